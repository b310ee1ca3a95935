"""A classifier of raw strings and numbers. Its ONNX export takes the raw rows of clients."""

from pathlib import Path

import numpy as np

import estimator_canned_tabular as tab
import estimator_core as ec

CITIES = ["Rome", "Oslo", "Lima", "Paris", "Århus", ""]
AGE = tab.numeric_column("age")
BUCKETS = tab.bucketized_column(AGE, [30.0, 40.0, 50.0])
CITY = tab.categorical_column_with_vocabulary_list("city", CITIES[:3], num_oov_buckets=1)
KNOWN_CITY = tab.categorical_column_with_vocabulary_list("city", ["Oslo", "Århus"], default_value=1)
TAGS = tab.categorical_column_with_vocabulary_list("tags", ["red", "blue"], max_values=3)
DAY = tab.categorical_column_with_identity("day", 7, default_value=3)
CODE = tab.categorical_column_with_vocabulary_list("day", [1, 5, 3], num_oov_buckets=1)
CROSSES = [
    tab.crossed_column([CITY, BUCKETS], 30),
    tab.crossed_column([TAGS, KNOWN_CITY, "day"], 1000, hash_key=2**64 - 5),
]
WIDE = [BUCKETS, CITY, CODE, tab.weighted_categorical_column(TAGS, "weights"), *CROSSES]
DEEP = [AGE, tab.embedding_column(TAGS, 3), tab.indicator_column(KNOWN_CITY), tab.embedding_column(DAY, 2)]
SENT = {
    "age": ec.export.Feature((None,)),
    "city": ec.export.Feature((None,), "string"),
    "tags": ec.export.Feature((None, 2), "string"),
    "weights": ec.export.Feature((None, 2)),
    "day": ec.export.Feature((None,), "int64"),
}


def rows(count):
    generator = np.random.default_rng(count)
    age = generator.normal(40, 10, count).astype(np.float32)
    age[::9] = np.nan
    return {
        "age": np.where(np.isnan(age), np.float32(40.0), age),
        "city": generator.choice(CITIES, count).astype(object),
        "tags": generator.choice(["red", "blue", "other", ""], (count, 2)).astype(object),
        "weights": generator.random((count, 2)).astype(np.float32),
        "day": generator.integers(-1, 9, count),
    }


def classifier(wide=WIDE, deep=DEEP):
    """A classifier that is trained for three steps."""
    made = tab.DNNLinearCombinedClassifier(
        linear_feature_columns=list(wide),
        dnn_feature_columns=list(deep),
        dnn_hidden_units=[4],
        n_classes=3,
        label_vocabulary=["young", "älter", "old"],
        config=ec.RunConfig(tf_random_seed=1, default_hooks=False, save_summary_steps=0),
    )
    features = rows(32)
    labels = np.array(["young", "älter", "old"])[np.digitize(features["age"], [35, 45])]
    return made.train(lambda: [(features, labels)] * 3)


def export(estimator, folder, sent=None):
    """The path of the classifier's ONNX export."""
    receiver = ec.export.build_raw_serving_input_receiver_fn(SENT if sent is None else sent)
    return Path(estimator.export_saved_model(str(folder), receiver, format="onnx"))


def write(folder):
    """Writes an export, a batch of raw rows and the predictions, for an environment without this framework."""
    estimator = classifier()
    path = export(estimator, folder / "export")
    (folder / "path.txt").write_text(str(path.relative_to(folder)))
    features = rows(64)
    plain = {name: value.astype(str) if value.dtype == object else value for name, value in features.items()}
    np.savez(folder / "inputs.npz", **plain)
    predicted = list(estimator.predict(lambda: [features]))
    outputs = {name: np.stack([row[name] for row in predicted]) for name in predicted[0]}
    np.savez(folder / "expected.npz", **{n: v.astype(str) if v.dtype == object else v for n, v in outputs.items()})
    print(f"raw rows: {sorted(outputs)}", flush=True)
