"""The table, the columns and the cases that are run with tf.estimator and with this package: numpy only, for both."""

import pathlib
import zlib

import numpy as np

ROWS, BATCH, STEPS = 64, 16, 50
CITIES = ["Rome", "Oslo", "Lima", "Bonn"]
TAGS = ["red", "green", "blue", "black", "white"]


def table():
    """Features and labels by name; the same numbers everywhere."""
    rng = np.random.default_rng(7)
    age = np.round(rng.normal(30.0, 12.0, (ROWS, 1)), 2).astype(np.float32)
    vector = np.round(rng.normal(0.0, 1.0, (ROWS, 3)), 3).astype(np.float32)
    city = rng.choice([*CITIES, "Nowhere", "Elsewhere", ""], ROWS)
    tags = rng.choice([*TAGS, "unknown", ""], (ROWS, 3))
    code = rng.integers(-1, 9, (ROWS, 2))
    weights = np.round(rng.uniform(0.2, 2.0, (ROWS, 3)), 2).astype(np.float32)
    score = 0.05 * (age[:, 0] - 30.0) + vector @ np.array([0.5, -1.0, 0.2]) + (city == "Rome") - (tags == "red").sum(1)
    return {
        "features": {
            "age": age,
            "vector": vector,
            "city": city,
            "city_h": city,
            "tags": tags,
            "tags_w": np.where(tags == "", "gold", tags),  # weights need a value each in the original
            "w": weights,
            "code": code,
            "i": rng.integers(0, 5, (ROWS, 2)),
            "j": rng.integers(0, 5, (ROWS, 1)),
            "example_weight": np.round(rng.uniform(0.5, 2.0, (ROWS, 1)), 2).astype(np.float32),
        },
        "binary": (score > 0).astype(np.int64)[:, None],
        "classes": np.digitize(score, [-0.7, 0.7])[:, None],
        "number": np.round(score, 3).astype(np.float32)[:, None],
        "numbers": np.round(np.stack([score, vector[:, 0] - score], 1), 3).astype(np.float32),
    }


def initial_value(name, shape):
    """What a variable begins with: numbers that depend on its name alone."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return np.round(rng.normal(0.0, 0.4, shape), 3).astype(np.float32)


# ---- Columns: the name of a function and its arguments --------------------------------------------------------------


def call(function, **arguments):
    return {"function": function, **arguments}


AGE = call("numeric_column", key="age", normalizer_fn="scaled")
RAW_AGE = call("numeric_column", key="age")
BUCKETS = call("bucketized_column", source_column=RAW_AGE, boundaries=[20.0, 30.0, 45.5])
VECTOR = call("numeric_column", key="vector", shape=[3])
VECTOR_BUCKETS = call("bucketized_column", source_column=VECTOR, boundaries=[-0.5, 0.5])
CITY = call("categorical_column_with_vocabulary_list", key="city", vocabulary_list=CITIES, num_oov_buckets=2)
CITY_HASH = call("categorical_column_with_hash_bucket", key="city_h", hash_bucket_size=7)
TAGS_FILE = call("categorical_column_with_vocabulary_file", key="tags", vocabulary_file="tags.txt")
CODE = call("categorical_column_with_identity", key="code", num_buckets=6, default_value=0)
CODE_HASH = call("categorical_column_with_hash_bucket", key="code", hash_bucket_size=5, dtype="int64")
CROSS = call("crossed_column", keys=["city", BUCKETS], hash_bucket_size=11, dense_strings=True)
CROSS_KEY = call("crossed_column", keys=[CODE, BUCKETS, "city"], hash_bucket_size=13, hash_key=5, dense_strings=True)
TAGS_HASH = call("categorical_column_with_hash_bucket", key="tags_w", hash_bucket_size=6)
WEIGHTED = call("weighted_categorical_column", categorical_column=TAGS_HASH, weight_feature_key="w")


def embedding(column, dimension=2, **more):
    return call("embedding_column", categorical_column=column, dimension=dimension, **more)


def indicator(column):
    return call("indicator_column", categorical_column=column)


LINEAR_KINDS = {
    "numeric": RAW_AGE,
    "normalizer": AGE,
    "vector": VECTOR,
    "bucketized": BUCKETS,
    "bucketized_vector": VECTOR_BUCKETS,
    "vocabulary_list": CITY,
    "vocabulary_file": TAGS_FILE,
    "hash": CITY_HASH,
    "integer_hash": CODE_HASH,
    "identity": CODE,
    "crossed": CROSS,
    "crossed_key": CROSS_KEY,
    "weighted": WEIGHTED,
    "indicator": indicator(TAGS_FILE),
}
DEEP_KINDS = {
    "numeric": RAW_AGE,
    "normalizer": AGE,
    "bucketized": BUCKETS,
    "bucketized_vector": VECTOR_BUCKETS,
    "indicator": indicator(TAGS_FILE),
    "indicator_weighted": indicator(WEIGHTED),
    "embedding_mean": embedding(TAGS_FILE, combiner="mean"),
    "embedding_sum": embedding(TAGS_FILE, combiner="sum"),
    "embedding_sqrtn": embedding(CODE, combiner="sqrtn"),
    "embedding_max_norm": embedding(CITY, dimension=3, max_norm=0.4),
    "embedding_weighted": embedding(WEIGHTED, combiner="mean"),
    "embedding_crossed": embedding(CROSS),
    "embedding_bucketized": embedding(BUCKETS),
    "embedding_untrained": embedding(CITY_HASH, trainable=False),
}
WIDE = [AGE, VECTOR, BUCKETS, CITY, TAGS_FILE, CITY_HASH, CODE, CROSS, WEIGHTED]
DEEP = [
    AGE,
    VECTOR_BUCKETS,
    indicator(TAGS_FILE),
    embedding(CITY_HASH),
    embedding(CITY, dimension=3, max_norm=0.4),
    embedding(CODE, combiner="sqrtn"),
    embedding(CROSS),
    embedding(WEIGHTED, combiner="sum"),
]

# ---- Cases ----------------------------------------------------------------------------------------------------------

RATES = {"Adagrad": 0.05, "Adam": 0.005, "Ftrl": 0.1, "RMSProp": 0.002, "SGD": 0.02}


def case(estimator, labels, **arguments):
    return {"estimator": estimator, "labels": labels, "arguments": arguments}


def optimizer(name, rate=None):
    return {"optimizer": name, "rate": RATES[name] if rate is None else rate}


def _of_family(family, labels, columns, **more):
    """The three estimators of a family."""
    head = {"head": "PoissonRegressionHead"} if family != "Baseline" else {"head": "LogisticRegressionHead"}
    target = "classes" if family != "Baseline" else "binary"
    return {
        f"{family}Classifier": case(f"{family}Classifier", "classes", n_classes=3, **columns, **more),
        f"{family}Regressor": case(f"{family}Regressor", labels, label_dimension=2, **columns, **more),
        f"{family}Estimator": case(f"{family}Estimator", target, **head, **columns, **more),
    }


def _every_estimator(name, rate=None):
    own = optimizer(name, rate)
    deep = {"hidden_units": [4, 3], "feature_columns": DEEP}
    both = {"linear_feature_columns": WIDE, "dnn_feature_columns": DEEP, "dnn_hidden_units": [4, 3]}
    return {
        **_of_family("Linear", "numbers", {"feature_columns": WIDE}, optimizer=own),
        **_of_family("DNN", "numbers", deep, optimizer=own),
        **_of_family("DNNLinearCombined", "numbers", both, linear_optimizer=own, dnn_optimizer=own),
        **_of_family("Baseline", "numbers", {}, optimizer=own),
    }


def cases():
    """Every case by name: estimators x optimizers, column kinds one by one, options."""
    found = {}
    for name in RATES:
        found.update({f"{kind}-{name}": made for kind, made in _every_estimator(name).items()})
    for kind, column in LINEAR_KINDS.items():
        found[f"linear-{kind}"] = case("LinearClassifier", "binary", feature_columns=[column])
    for kind, column in DEEP_KINDS.items():
        found[f"deep-{kind}"] = case(
            "DNNClassifier",
            "binary",
            feature_columns=[column],
            hidden_units=[3],
            optimizer=optimizer("Adagrad"),
        )
    found.update(_options())
    return found


def _options():
    deep = {"hidden_units": [4, 3], "feature_columns": DEEP, "optimizer": optimizer("Adagrad")}
    both = {"linear_feature_columns": WIDE, "dnn_feature_columns": DEEP, "dnn_hidden_units": [4, 3]}
    names = {"label_vocabulary": ["cold", "mild", "warm"], "n_classes": 3}
    return {
        "defaults-linear": case("LinearRegressor", "number", feature_columns=WIDE),
        "defaults-deep": case("DNNClassifier", "binary", hidden_units=[4], feature_columns=DEEP),
        "defaults-combined": case("DNNLinearCombinedClassifier", "binary", **both),
        "defaults-baseline": case("BaselineClassifier", "classes", n_classes=3),
        "linear-mean": case("LinearClassifier", "binary", feature_columns=WIDE, sparse_combiner="mean"),
        "linear-sqrtn": case("LinearClassifier", "binary", feature_columns=WIDE, sparse_combiner="sqrtn"),
        "linear-weights": case("LinearClassifier", "binary", feature_columns=WIDE, weight_column="example_weight"),
        "linear-sum": case("LinearRegressor", "number", feature_columns=WIDE, loss_reduction="sum"),
        "linear-names": case("LinearClassifier", "classes", feature_columns=WIDE, **names),
        "deep-batch-norm": case("DNNRegressor", "number", batch_norm=True, **deep),
        "deep-weights": case("DNNClassifier", "binary", weight_column="example_weight", **deep),
        "deep-tanh": case("DNNClassifier", "binary", activation_fn="tanh", **deep),
        "combined-linear-only": case("DNNLinearCombinedRegressor", "number", linear_feature_columns=WIDE),
        "combined-batch-norm": case("DNNLinearCombinedRegressor", "number", batch_norm=True, **both),
    }


def labels_of(made, values):
    """The labels of a case: names where it has a vocabulary."""
    names = made["arguments"].get("label_vocabulary")
    return values[made["labels"]] if names is None else np.array(names)[values[made["labels"]]]


def build_columns(specs, functions, folder, own):
    """Columns of a library from their specifications.

    Args:
        specs: as above; a list, a dict or a plain value.
        functions: the module with the functions.
        folder: where vocabulary files are.
        own: whether it is this package, which knows `dense_strings`.
    """
    if isinstance(specs, list):
        return [build_columns(spec, functions, folder, own) for spec in specs]
    if not isinstance(specs, dict):
        return specs
    arguments = {name: build_columns(value, functions, folder, own) for name, value in specs.items()}
    function = arguments.pop("function")
    if not own:
        arguments.pop("dense_strings", None)
    if "vocabulary_file" in arguments:
        arguments["vocabulary_file"] = str(pathlib.Path(folder, arguments["vocabulary_file"]))
    if arguments.get("normalizer_fn") == "scaled":
        arguments["normalizer_fn"] = lambda age: (age - 30.0) / 10.0
    if "dtype" in arguments and not own:
        arguments["dtype"] = functions.dtypes[arguments["dtype"]]
    return getattr(functions, function)(**arguments)


def write_files(folder):
    """The vocabulary files."""
    pathlib.Path(folder, "tags.txt").write_text("".join(f"{tag}\n" for tag in TAGS))
