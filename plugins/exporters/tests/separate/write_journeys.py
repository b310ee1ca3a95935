"""Trains canned models from a CSV file and exports them: `python write_journeys.py FORMAT DIRECTORY`.

Each model has a folder in DIRECTORY. `paths.json` names an export that takes features, and one that takes tf.Examples
where the format reads them. `requests.json` contains rows in both forms, `expected.json` the estimator's predictions
for them. `arrays.npz` contains the arrays that host transforms make from the rows, for a format that leaves the
transforms to Python.
"""

import base64
import csv
import json
import sys
from pathlib import Path

import numpy as np

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_heads import RegressionHead

ROWS, STEPS = 48, 4
FIELDS = ("age", "fare", "sex", "port", "ticket", "cabin", "tags", "weights", "visits", "survived", "class", "price")
SURVIVED = ["lived", "died"]


def write_csv(path):
    """Writes a table of passengers. Several values of a field are joined by a bar, and some fields are empty."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for row in range(ROWS):
            count = int(rng.integers(0, 4))
            writer.writerow(
                [
                    round(float(rng.normal(35, 15)), 2),
                    round(float(rng.gamma(2, 20)), 2),
                    rng.choice(["male", "female"]),
                    rng.choice(["Cherbourg", "Queenstown", "Southampton", "Zürich", ""]),
                    int(rng.integers(0, 2**40)),
                    int(rng.integers(-1, 9)),
                    "|".join(rng.choice(["crew", "band", "cook", "child"], count)),
                    "|".join(str(round(float(weight), 2)) for weight in rng.uniform(0.1, 2, count)),
                    "|".join(rng.choice(["deck", "bar", "bridge"], count + 1)),
                    SURVIVED[row % 2],
                    row % 3,
                    round(float(rng.normal(10, 3)), 2),
                ]
            )


def several(rows, field, places, blank):
    found = np.full((len(rows), places), blank, object if blank == "" else np.float32)
    for row, values in enumerate(found):
        given = rows[row][field].split("|") if rows[row][field] else []
        values[: len(given)] = given
    return found


def read_csv(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    features = {name: np.array([[float(row[name])] for row in rows], np.float32) for name in ("age", "fare")}
    features |= {name: np.array([[row[name]] for row in rows], object) for name in ("sex", "port")}
    features |= {name: np.array([[int(row[name])] for row in rows], np.int64) for name in ("ticket", "cabin")}
    features |= {"tags": several(rows, "tags", 3, ""), "weights": several(rows, "weights", 3, 0.0)}
    features["visits"] = several(rows, "visits", 4, "")
    labels = {
        "survived": np.array([[row["survived"]] for row in rows], object),
        "class": np.array([[int(row["class"])] for row in rows], np.int32),
        "price": np.array([[float(row["price"])] for row in rows], np.float32),
    }
    return features, labels


def columns(vocabulary):
    """Wide and deep columns of every kind, and sequence columns."""
    age = tab.numeric_column("age", normalizer_fn=lambda years: (years - 35) / 15)
    ages = tab.bucketized_column(tab.numeric_column("age"), [18.0, 35.0, 65.0])
    sex = tab.categorical_column_with_vocabulary_list("sex", ["male", "female"])
    port = tab.categorical_column_with_vocabulary_file("port", vocabulary, num_oov_buckets=2)
    ticket = tab.categorical_column_with_hash_bucket("ticket", 30, dtype="int64")
    cabin = tab.categorical_column_with_identity("cabin", 7, default_value=0)
    tags = tab.categorical_column_with_hash_bucket("tags", 10)
    weighted = tab.weighted_categorical_column(tags, "weights")
    crossed = tab.crossed_column([ages, "sex", port], 40)
    wide = [ages, sex, port, ticket, crossed, weighted]
    deep = [age, tab.numeric_column("fare"), tab.embedding_column(tags, 3), tab.indicator_column(cabin)]
    deep += [tab.embedding_column(weighted, 2, combiner="sqrtn"), tab.indicator_column(crossed)]
    visits = tab.sequence_categorical_column_with_vocabulary_list("visits", ["deck", "bar"], num_oov_buckets=1)
    return wide, deep, [tab.embedding_column(visits, 3)]


def models(vocabulary):
    """The estimators by name: `make(model_dir)`, the label, and the columns of its requests."""
    wide, deep, steps = columns(vocabulary)
    context = [tab.numeric_column("age"), wide[0], tab.indicator_column(wide[1])]
    hidden = {"dnn_hidden_units": [4]}
    both = {"linear_feature_columns": wide, "dnn_feature_columns": deep, **hidden}
    named = {"label_vocabulary": SURVIVED}

    def made(kind, label, used, *args, **more):
        config = ec.RunConfig(tf_random_seed=1)
        return lambda model_dir: kind(*args, model_dir=str(model_dir), config=config, **more), label, used

    return {
        "linear_classifier": made(tab.LinearClassifier, "survived", wide, wide, **named),
        "linear_regressor": made(tab.LinearRegressor, "price", wide, wide),
        "dnn_classifier": made(tab.DNNClassifier, "class", deep, [4], deep, n_classes=3),
        "dnn_regressor": made(tab.DNNRegressor, "price", deep, [4], deep),
        "combined_classifier": made(tab.DNNLinearCombinedClassifier, "survived", [*wide, *deep], **both, **named),
        "combined_regressor": made(tab.DNNLinearCombinedRegressor, "price", [*wide, *deep], **both),
        "rnn_classifier": made(
            tab.RNNClassifier, "survived", [*steps, *context], steps, context, units=[4], cell_type="gru", **named
        ),
        "rnn_regressor": made(
            tab.RNNEstimator, "price", [*steps, *context], RegressionHead(), steps, context, units=[4], cell_type="lstm"
        ),
    }


def record(features, row):
    """A tf.Example without the places that have no value."""
    example = ec.export.example_class()()
    for name, array in features.items():
        values = array[row].tolist()
        feature = example.features.feature[name]
        if array.dtype == object:
            feature.bytes_list.value.extend(value.encode() for value in values if value)
        elif array.dtype == np.int64:
            feature.int64_list.value.extend(value for value in values if value != -1)
        else:
            feature.float_list.value.extend(values)
    return base64.b64encode(example.SerializeToString()).decode()


def write(name, made, features, labels, format_name, folder):
    make, label, used = made
    folder.mkdir(parents=True)
    spec = tab.make_parse_example_spec(used)
    own = {key: features[key] for key in spec}
    estimator = make(folder / "model").train(lambda: [(own, labels[label])] * STEPS)
    raw = {
        key: ec.export.Feature((None, x.shape[1]), "string" if x.dtype == object else str(x.dtype))
        for key, x in own.items()
    }
    receivers = {"features": ec.export.build_raw_serving_input_receiver_fn(raw)}
    if format_name == "saved_model":
        receivers["examples"] = ec.export.build_parsing_serving_input_receiver_fn(spec)
    paths = {
        kind: str(
            Path(estimator.export_saved_model(str(folder / kind), receiver, format=format_name)).relative_to(folder)
        )
        for kind, receiver in receivers.items()
    }
    if format_name == "stablehlo":
        served = ec.export.load(str(folder / paths["features"])).raw_signatures["predict"]
        np.savez(folder / "arrays.npz", **served.prepare(own))
    rows = list(estimator.predict(lambda: [own]))
    expected = {key: np.stack([row[key] for row in rows]).tolist() for key in rows[0]}
    requests = {
        "examples": [record(own, row) for row in range(ROWS)],
        "features": {key: array.tolist() for key, array in own.items()},
    }
    for what, content in (("paths", paths), ("requests", requests), ("expected", expected)):
        (folder / f"{what}.json").write_text(json.dumps(content))
    print(f"{name}: {len(spec)} features, {sorted(expected)}", flush=True)


if __name__ == "__main__":
    directory = Path(sys.argv[2])
    directory.mkdir(parents=True)
    write_csv(directory / "passengers.csv")
    ports = directory / "ports.txt"
    ports.write_text("Cherbourg\nQueenstown\nSouthampton\n")
    everything = read_csv(directory / "passengers.csv")
    for model, one in models(ports).items():
        write(model, one, *everything, sys.argv[1], directory / model)
    ports.unlink()  # the exports have their own model_dir
