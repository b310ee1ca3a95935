"""Canned estimators and optimizers that both sides build: numpy only, and Python 3.7, for TensorFlow 1.15."""

import numpy as np

ROWS, BATCH, STEPS = 80, 16, 50  # five batches, so that step 50 begins where step 0 did
KINDS = ("Baseline", "DNN", "DNNLinearCombined", "Linear")
ESTIMATORS = tuple(kind + what for kind in KINDS for what in ("Classifier", "Regressor"))
#: Names that both versions know. Only Momentum has no name, and its class is passed.
OPTIMIZERS = ("Adagrad", "Adam", "Ftrl", "Momentum", "RMSProp", "SGD")
#: The arguments of the Momentum class, because an optimizer name has no momentum. At ten times this rate, one case of
#: 1.15 amplifies rounding errors: docs/migrate/checkpoints.md.
RATE, MOMENTUM = 0.002, 0.9
WORDS, HIDDEN = ["x", "y", "z"], [4, 3]
BOUNDARIES = [-0.5, 0.5]
#: Enough columns that a rate which falls with their number differs from the default rate.
MORE = [f"n{k}" for k in range(24)]


VERSIONS = ("2.15.1", "1.15.0")
COMBINED = "DNNLinearCombinedClassifier"
#: (version, estimator, optimizer) whose checkpoints are kept for the ordinary tests. Each run uses the first two.
RECORDED = (
    ("2.15.1", COMBINED, "Adam"),
    ("1.15.0", COMBINED, "RMSProp"),
    ("2.15.1", "DNNClassifier", "Momentum"),
    ("2.15.1", COMBINED, "Ftrl"),
    ("1.15.0", COMBINED, "Adagrad"),
    ("1.15.0", COMBINED, "Adam"),
)


def names():
    """Returns every case as (estimator, optimizer)."""
    return [(estimator, optimizer) for estimator in ESTIMATORS for optimizer in OPTIMIZERS]


def folder_of(version, estimator, optimizer):
    """Returns the name of a case's folder of checkpoints, below `recorded/canned` and in the folder of a proof."""
    return "_".join((version, estimator, optimizer))


def kind_of(estimator):
    """Returns the name without the kind of prediction."""
    return estimator.replace("Classifier", "").replace("Regressor", "")


def classes_of(estimator):
    """Returns two or three classes, which need one logit or as many logits as classes."""
    return 3 if estimator in ("BaselineClassifier", "DNNClassifier") else 2


def table(estimator):
    """Returns features, which include a word that the vocabulary lacks, and labels."""
    rng = np.random.RandomState(5)
    features = {
        "a": rng.randn(ROWS).astype(np.float32),
        "b": rng.randn(ROWS).astype(np.float32),
        "c": rng.choice([*WORDS, "unknown"], ROWS),
        "h": rng.choice(["Rome", "Oslo", "Lima", "Bonn", "Bern"], ROWS),
    }
    score = features["a"] + features["b"] + (features["c"] == "x") + 0.3 * rng.randn(ROWS)
    if kind_of(estimator) == "Linear":
        features.update((name, (0.1 * rng.randn(ROWS)).astype(np.float32)) for name in MORE)
    if kind_of(estimator) == "Baseline":  # TensorFlow 2 compares the sizes of several features, and fails at that
        features = {"a": features["a"]}
    if estimator.endswith("Regressor"):
        return features, score.astype(np.float32)
    return features, np.digitize(score, [0.0, 1.0]).clip(0, classes_of(estimator) - 1).astype(np.int64)


def arguments(estimator, functions, optimizer):
    """Returns the arguments of an estimator, with the feature columns of the given library."""
    a, b = functions.numeric_column("a"), functions.numeric_column("b")
    c = functions.categorical_column_with_vocabulary_list("c", WORDS)
    h = functions.categorical_column_with_hash_bucket("h", 7)
    wide = [c, h, functions.crossed_column(["c", "h"], 11), a, functions.bucketized_column(b, BOUNDARIES)]
    deep = [a, b, functions.embedding_column(c, 2), functions.indicator_column(h)]
    given = {"n_classes": classes_of(estimator)} if estimator.endswith("Classifier") else {}
    kind = kind_of(estimator)
    if kind == "Baseline":
        return dict(given, optimizer=optimizer)
    if kind == "Linear":
        more = [functions.numeric_column(name) for name in MORE]
        return dict(given, feature_columns=wide + more, optimizer=optimizer)
    if kind == "DNN":
        return dict(given, feature_columns=deep, hidden_units=HIDDEN, optimizer=optimizer)
    both = {"linear_feature_columns": wide, "dnn_feature_columns": deep, "dnn_hidden_units": HIDDEN}
    return dict(given, linear_optimizer=optimizer, dnn_optimizer=optimizer, **both)
