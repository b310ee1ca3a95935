"""Small canned tabular models: `MODELS[name]() -> (estimator, labels)`, with the features of `FEATURES`."""

import numpy as np

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_heads import BinaryClassHead, RegressionHead

ROWS = 16
RNG = np.random.default_rng(0)
FEATURES = {
    "age": RNG.normal(size=ROWS).astype(np.float32),
    "point": RNG.normal(size=(ROWS, 2)).astype(np.float32),
    "day": RNG.integers(-1, 6, ROWS),
    "user": RNG.integers(0, 6, ROWS),
    "steps": RNG.integers(0, 6, (ROWS, 4)),
}
BINARY = (FEATURES["age"] > 0).astype(np.int64)[:, None]
CLASSES = RNG.choice(["red", "green", "blue"], (ROWS, 1))
NUMBER = FEATURES["age"][:, None]

AGE, POINT = tab.numeric_column("age"), tab.numeric_column("point", 2)
DAY, USER = (tab.categorical_column_with_identity(key, 6) for key in ("day", "user"))
STEPS = tab.embedding_column(tab.sequence_categorical_column_with_identity("steps", 6, max_values=4), 3)
MISSING = tab.categorical_column_with_vocabulary_list("day", [0, 1, 2], missing_bucket=True)
DAYS, USERS = tab.embedding_column(DAY, 3), tab.embedding_column(USER, 3)
WIDE = [AGE, tab.bucketized_column(AGE, [-1.0, 0.0, 1.0]), DAY, tab.crossed_column([DAY, "user"], 20)]
DEEP = [AGE, POINT, DAYS, tab.indicator_column(USER)]
COMBINED = {"linear_feature_columns": WIDE, "dnn_feature_columns": DEEP, "dnn_hidden_units": [4]}
NAMES = {"n_classes": 3, "label_vocabulary": ["red", "green", "blue"]}


def config():
    return ec.RunConfig(tf_random_seed=1, default_hooks=False, save_summary_steps=0)


MODELS = {
    "linear_classifier": lambda: (tab.LinearClassifier(WIDE, config=config()), BINARY),
    "linear_classifier_of_names": lambda: (tab.LinearClassifier(WIDE, config=config(), **NAMES), CLASSES),
    "linear_regressor": lambda: (tab.LinearRegressor(WIDE, config=config()), NUMBER),
    "dnn_classifier": lambda: (tab.DNNClassifier([4], DEEP, config=config()), BINARY),
    "dnn_classifier_normalized": lambda: (
        tab.DNNClassifier([4], DEEP, batch_norm=True, dropout=0.5, config=config()),
        BINARY,
    ),
    "dnn_classifier_of_missing_words": lambda: (
        tab.DNNClassifier([4], [tab.indicator_column(MISSING), DAYS], row_sparse="as_tf", config=config()),
        BINARY,
    ),
    "dnn_regressor": lambda: (tab.DNNRegressor([4], DEEP, config=config()), NUMBER),
    "combined_classifier": lambda: (tab.DNNLinearCombinedClassifier(**COMBINED, config=config()), BINARY),
    "combined_regressor": lambda: (tab.DNNLinearCombinedRegressor(**COMBINED, config=config()), NUMBER),
    "baseline_classifier": lambda: (tab.BaselineClassifier(config=config()), BINARY),
    "baseline_regressor": lambda: (tab.BaselineRegressor(config=config()), NUMBER),
    "rnn_lstm": lambda: (tab.RNNClassifier([STEPS], [AGE], [4], "lstm", config=config()), BINARY),
    "rnn_gru": lambda: (tab.RNNClassifier([STEPS], [AGE], [4], "gru", config=config()), BINARY),
    "rnn_simple": lambda: (
        tab.RNNEstimator(RegressionHead(), [STEPS], [AGE], [4, 4], "simple_rnn", config=config()),
        NUMBER,
    ),
    "kmeans": lambda: (tab.KMeans(2, feature_columns=[POINT], config=config()), None),
    "kmeans_of_angles": lambda: (
        tab.KMeans(2, feature_columns=[POINT], distance_metric="cosine", config=config()),
        None,
    ),
    "dcn": lambda: (tab.DCNEstimator(BinaryClassHead(), DEEP, hidden_units=[4], config=config()), BINARY),
    "dlrm": lambda: (tab.DLRMEstimator(BinaryClassHead(), [AGE, POINT], [DAYS, USERS], config=config()), BINARY),
    "two_tower": lambda: (tab.TwoTowerEstimator(BinaryClassHead(), [DAYS], [USERS], 4, config=config()), BINARY),
}


def trained(name):
    """The estimator of a model after three steps."""
    estimator, labels = MODELS[name]()
    return estimator.train(lambda: [FEATURES if labels is None else (FEATURES, labels)] * 3)


def receiver():
    features = {name: ec.export.Feature((None, *value.shape[1:]), str(value.dtype)) for name, value in FEATURES.items()}
    return ec.export.build_raw_serving_input_receiver_fn(features)
