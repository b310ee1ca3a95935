"""Labels and numbers as people have them: converted where that is safe, else refused with row, value and remedy."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_core.checkpoint import load_variables
from estimator_core.errors import ArgumentError, InputError
from estimator_core.inputs import numpy_input_fn
from estimator_heads.data.class_labels import ClassLabels
from estimator_heads.data.learning import learn_from
from estimator_heads.data.places import Place
from estimator_inputs import csv_input_fn, pandas_input_fn, table_input_fn

pd = pytest.importorskip("pandas")
pytestmark = [pytest.mark.plugins, pytest.mark.libraries]  # exports and DataFrames
X = tab.numeric_column("x")


def arrays(labels, x=None, batch_size=4, epochs=1):
    x = np.linspace(-1, 1, len(labels), dtype=np.float32) if x is None else x
    return numpy_input_fn({"x": x}, labels, batch_size, epochs, shuffle=False)


def stream(labels, x=None, batch_size=4):
    """The same as an input of separate batches."""
    return lambda: list(arrays(labels, x, batch_size)())


def linear(tmp_path, n_classes=2, columns=(X,), **options):
    return tab.LinearClassifier(list(columns), str(tmp_path / "model"), n_classes=n_classes, **options)


def classes(estimator, rows=4):
    given = numpy_input_fn({"x": np.linspace(-1, 1, rows, dtype=np.float32)}, batch_size=rows, shuffle=False)
    found = list(estimator.predict(given))
    assert found[0]["all_classes"].dtype.kind in "OU"
    return [str(name) for name in found[0]["all_classes"]]


def untouched(tmp_path):
    """Nothing was trained and nothing was written."""
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    return not [path for path in files if path.name != "seen_features.json"]


LABELS = {
    "texts": (np.array(["cat", "dog"] * 4), ["cat", "dog"]),
    "bytes": (np.array([b"cat", b"dog"] * 4), ["cat", "dog"]),
    "objects": (np.array(["dog", "cat"] * 4, object), ["cat", "dog"]),
    "truth": (np.array([True, False] * 4), ["False", "True"]),
    "ids": (np.array([0, 1] * 4), ["0", "1"]),
    "integers from 1": (np.array([1, 2] * 4), ["1", "2"]),
    "minus and plus one": (np.array([-1, 1] * 4), ["-1", "1"]),
    "floats from 1": (np.array([1.0, 2.0] * 4), ["1", "2"]),
    "three integers from 1": (np.array([1, 2, 3, 1] * 2), ["1", "2", "3"]),
    "three whole floats": (np.array([0.0, 1.0, 2.0, 1.0] * 2), ["0", "1", "2"]),
    "three texts": (np.array(["b", "c", "a", "a"] * 2), ["a", "b", "c"]),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if at % 3 else ()) for at, name in enumerate(LABELS)]
)
def test_labels_as_they_come(tmp_path, name):
    labels, names = LABELS[name]
    estimator = linear(tmp_path, len(names)).train(arrays(labels, epochs=2))
    assert classes(estimator) == names


@pytest.mark.parametrize(
    "name", ["truth", "three texts", pytest.param("three integers from 1", marks=pytest.mark.slow)]
)
def test_the_next_process_reads_labels_alike(tmp_path, name):
    labels, names = LABELS[name]
    estimator = linear(tmp_path, len(names)).train(arrays(labels, epochs=2))
    found = estimator.evaluate(arrays(labels))
    again = linear(tmp_path, len(names))  # another process reads the names from the checkpoint
    assert classes(again) == names
    assert again.evaluate(arrays(labels)) == found
    assert again.evaluate(stream(labels)) == found


def test_names_are_in_the_checkpoint(tmp_path):
    estimator = linear(tmp_path, 3).train(arrays(np.array(["b", "c", "a"] * 2)))
    written = load_variables(estimator.latest_checkpoint(), ["data_contract"])["data_contract"]
    assert written.tobytes() == b'{"labels": ["a", "b", "c"]}'
    elsewhere = tab.LinearClassifier([X], str(tmp_path / "other"), n_classes=3)
    given = numpy_input_fn({"x": np.zeros(1, np.float32)}, batch_size=1, shuffle=False)
    (found,) = elsewhere.predict(given, checkpoint_path=estimator.latest_checkpoint())
    assert found["all_classes"].tolist() == ["a", "b", "c"]


def test_labels_of_a_frame_of_one_column(tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "kind": pd.Categorical(["no", "yes", "yes", "no"])})
    given = pandas_input_fn(frame[["x"]], frame[["kind"]], 2, shuffle=False)
    estimator = linear(tmp_path).train(given)
    assert classes(estimator) == ["no", "yes"]
    numbers = pandas_input_fn(frame[["x"]], frame[["x"]].rename(columns={"x": "y"}), 2, num_epochs=1, shuffle=False)
    regressor = tab.LinearRegressor([X], str(tmp_path / "numbers")).train(numbers)
    assert np.isfinite(regressor.evaluate(numbers)["loss"])


def test_names_are_learned_from_files(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,kind\n" + "".join(f"{n},{'ab'[n > 5]}\n" for n in range(8)))
    given = csv_input_fn(path, 4, shuffle=True, num_epochs=1, label_name="kind")
    assert classes(linear(tmp_path).train(given)) == ["a", "b"]


@pytest.mark.parametrize("labels", [[1, 2], [-1, 1], [2.0, 1.0]])
def test_integers_that_are_no_ids_are_learned_from_files(tmp_path, labels):
    """The first blocks hold one label only. Arrays learned such labels, and files were refused."""
    path = tmp_path / "rows.csv"
    path.write_text("x,kind\n" + "".join(f"{n},{labels[n > 30]}\n" for n in range(40)))
    given = csv_input_fn(path, 4, shuffle=True, num_epochs=1, label_name="kind", block_bytes=64)
    estimator = linear(tmp_path).train(given)
    assert classes(estimator) == [str(int(label)) for label in sorted(labels)]
    assert 0 <= estimator.evaluate(given)["accuracy"] <= 1


@pytest.mark.parametrize(("labels", "read"), [([0, 1], 1), ([0.25, 0.75], 1), ([1, 0], 3), ([-1, 0], 5)])
def test_labels_of_files_are_read_until_they_are_ids(labels, read):
    parts = [np.full(2, labels[0])] * 2 + [np.array(labels)] + [np.full(2, labels[1])] * 2
    rest = iter([({"x": np.zeros(2)}, part) for part in parts])
    learn_from(rest, [Place(None, True, ClassLabels(n_classes=2))], whole=False)
    assert len(list(rest)) == len(parts) - read


def test_an_export_names_the_classes(tmp_path):
    estimator = linear(tmp_path, 3).train(arrays(np.array([1, 2, 3])))
    receiver = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None,), "float32")})
    served = ec.export.load(estimator.export_saved_model(str(tmp_path / "export"), receiver))
    found = served.raw_signatures["predict"](x=np.zeros(2, np.float32))
    assert [[str(name) for name in row] for row in found["all_classes"]] == [["1", "2", "3"]] * 2
    with pytest.raises(ArgumentError, match=r"Feature 'x' holds nan in row 1: it is missing.*missing="):
        served.raw_signatures["predict"](x=np.array([0, np.nan], np.float32))


WRONG_LABELS = {
    "a text stream": (
        stream(np.array(["a", "b"] * 2)),
        2,
        "hold 'a' in row 0 of batch 1.*a string, but.*label_vocabulary=",
    ),
    "1 to 3 in a stream": (stream(np.array([1, 2, 0, 3])), 3, r"hold 3 in row 3 of batch 1.*Labels must be <= 3 - 1"),
    "below 0": (arrays(np.array([0, 1, 2, -4])), 3, r"hold -4 in row 3: it is not a class id \(Labels must be >= 0\)"),
    "far away": (arrays(np.array([0, 1, 7])), 3, r"hold 7 in row 2: .*from 0 to 2.*label_vocabulary="),
    "NaN": (arrays(np.array([0, 1, np.nan])), 2, "hold nan in row 2: it is not a class"),
    "infinity": (arrays(np.array([0, 1, np.inf])), 3, "hold inf in row 2"),
    "a fraction": (arrays(np.array([0, 1, 0.5])), 3, "hold 0.5 in row 2"),
    "above 1": (arrays(np.array([0, 1, 1.5])), 2, "hold 1.5 in row 2"),
    "too many texts": (arrays(np.array(["a", "b", "c"])), 2, "hold 3 different strings .*'a', 'b', 'c'.*n_classes=3"),
    "too few texts": (arrays(np.array(["a", "a"])), 2, "hold 1 different strings .*Give all classes as"),
    "a missing text": (arrays(np.array(["a", None, "b"], object)), 2, "hold None in row 1: it is missing"),
    "a date": (
        arrays(np.array(["2024-01-01"], "datetime64[D]")),
        2,
        "hold '2024-01-01' in row 0: it is a date or a time span, no",
    ),
}


@pytest.mark.parametrize("name", WRONG_LABELS)
def test_wrong_labels_are_refused(tmp_path, name):
    given, n_classes, message = WRONG_LABELS[name]
    with pytest.raises(InputError, match=f"Labels {message}"):
        linear(tmp_path, n_classes).train(given)
    assert untouched(tmp_path)


def test_a_label_that_is_nan_late_in_a_stream(tmp_path):
    """The error names the row, not the checkpoint at the end of the input."""
    labels = np.array([0.0, 1.0] * 80)
    labels[43] = np.nan
    with pytest.raises(InputError, match="Labels hold nan in row 3 of batch 11, example 44 of the input"):
        linear(tmp_path).train(stream(labels))


def test_a_class_that_training_never_saw(tmp_path):
    estimator = linear(tmp_path).train(arrays(np.array(["a", "b"])))
    with pytest.raises(InputError, match="hold 'c' in row 1: it is not one of the classes 'a', 'b'"):
        estimator.evaluate(arrays(np.array(["a", "c"])))
    given = linear(tmp_path / "given", label_vocabulary=["a", "b"])
    with pytest.raises(InputError, match=r"hold 'c' in row 1 .*not one of the classes"):
        given.train(stream(np.array(["a", "c"])))


WRONG_NUMBERS = {
    "NaN": (np.array([0, 1, np.nan, 3]), r"holds nan in row 2.*: it is missing.*missing=: a number, 'mean'"),
    "infinity": (np.array([0, np.inf, 2, 3]), "holds inf in row 1.*: it is not finite"),
    "text": (
        np.array(["a", "b", "c", "d"]),
        "holds 'a' in row 0.*: it is a string.*categorical_column_with_vocabulary",
    ),
    "a text among numbers": (np.array([1, 2, "c", 4], object), "holds 'c' in row 2.*: it is a string"),
    "a date": (
        np.array(["2024-01-01"] * 4, "datetime64[D]"),
        "holds '2024-01-01' in row 0.*: it is a date.*Convert it",
    ),
    "a time span": (
        np.array([1, 2, 3, 4], "timedelta64[h]"),
        "holds '1 hours' in row 0.*: it is a time span.*Convert it to a number",
    ),
    "a list": (np.array([[1], [1, 2], [3], [4]], object), r"holds \[1\] in row 0.*: it is a list.*sequence_numeric"),
    "None": (np.array([1.0, None, 2.0, 3.0], object), "holds nan in row 1.*: it is missing"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return linear(tmp_path_factory.mktemp("trained")).train(arrays(np.array([0, 1, 0, 1])))


DOORS = {
    "train": lambda estimator, given: estimator.train(given),
    "evaluate": lambda estimator, given: estimator.evaluate(given),
    "predict": lambda estimator, given: list(estimator.predict(given)),
    "predictor": lambda estimator, given: estimator.predictor()(next(iter(given()))[0]),
}


@pytest.mark.parametrize("made", [arrays, stream])
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", WRONG_NUMBERS)
def test_wrong_numbers_are_refused(tmp_path, trained, name, door, made):
    wrong, message = WRONG_NUMBERS[name]
    estimator = linear(tmp_path) if door == "train" else trained
    given = made(np.array([0, 1, 0, 1]), wrong)
    with pytest.raises(InputError, match=f"Feature 'x' {message}"):
        DOORS[door](estimator, given)
    assert untouched(tmp_path)


def test_a_wrong_value_of_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,kind\n" + "".join(f"{'inf' if n == 7 else n},{n % 2}\n" for n in range(10)))
    given = csv_input_fn(path, 4, shuffle=True, num_epochs=1, label_name="kind")
    with pytest.raises(InputError, match=r"Feature 'x' holds inf in .*rows\.csv, line 9: it is not finite"):
        linear(tmp_path).train(given)


def test_checks_can_be_switched_off(tmp_path):
    config = ec.RunConfig(check_inputs=False, model_dir=str(tmp_path / "model"))
    estimator = tab.LinearClassifier([X], config=config)
    with pytest.raises(ec.errors.NanLossDuringTrainingError, match="step 1"):
        estimator.train(arrays(np.array([0, 1, 0, 1]), np.array([1, np.nan, 2, 3])))


def test_nan_that_arises_in_the_model_is_told_apart(tmp_path):
    column = tab.numeric_column("x", normalizer_fn=lambda x: x / 0.0)
    with pytest.raises(ec.errors.NanLossDuringTrainingError):
        linear(tmp_path, columns=[column]).train(arrays(np.array([0, 1, 0, 1])))


def test_a_column_that_nobody_reads_may_be_anything(tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0], "unread": pd.array([1, None], dtype="Int64")})
    estimator = linear(tmp_path).train(pandas_input_fn(frame, pd.Series([0, 1]), 2, shuffle=False))
    assert classes(estimator) == ["0", "1"]
    read = tab.LinearClassifier([tab.numeric_column("unread")], str(tmp_path / "model"))
    with pytest.raises(InputError, match="Feature 'unread' holds nan in row 1: it is missing"):
        read.train(pandas_input_fn(frame, pd.Series([0, 1]), 2, shuffle=False))


WEIGHTS = {
    "missing": (np.array([1.0, np.nan, 1.0, 1.0]), "nan in row 1", "it is not finite. Correct the weight"),
    "infinite": (np.array([1.0, np.inf, 1.0, 1.0]), "inf in row 1", "it is not finite. Correct the weight"),
    "negative": (np.array([1.0, -0.5, 1.0, 1.0]), "-0.5 in row 1", "it must be at least 0. Correct the weight"),
    "a text": (np.array(["a", "b", "a", "b"]), "'a' in row 0", "it is a str_, not a number. Correct the weight"),
}


@pytest.mark.parametrize("form", ["arrays", "stream"])
@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_cannot_be(tmp_path, name, form):
    weights, place, problem = WEIGHTS[name]
    x, labels = np.zeros(4, np.float32), np.array([0, 1, 0, 1])
    given = numpy_input_fn({"x": x, "w": weights}, labels, 4, shuffle=False)
    given_as = given if form == "arrays" else lambda: list(given())
    estimator = linear(tmp_path, weight_column="w")
    with pytest.raises(InputError, match=f"Weight 'w' holds {place}.*: {problem}"):
        estimator.train(given_as)
    assert untouched(tmp_path)
    estimator.train(numpy_input_fn({"x": x, "w": np.array([0.0, 1, 2, 3])}, labels, 4, shuffle=False))
    with pytest.raises(InputError, match=f"Weight 'w' holds {place}.*: {problem}"):
        estimator.evaluate(given_as)
    if name != "a text":
        assert len(list(estimator.predict(given_as, predict_keys=["classes"]))) == 4  # predictions need no weights


@pytest.mark.slow
def test_a_normalizer_may_take_negative_weights(tmp_path):
    given = numpy_input_fn({"x": np.zeros(4, np.float32), "w": -np.ones(4)}, np.array([0, 1] * 2), 4, shuffle=False)
    estimator = linear(tmp_path, weight_column=tab.numeric_column("w", normalizer_fn=abs))
    assert np.isfinite(estimator.train(given).evaluate(given)["loss"])


def test_ids_of_64_bits_are_hashed_whatever_holds_them(tmp_path):
    ids, labels = np.arange(2**40, 2**40 + 40 * 12345, 12345), np.arange(40) % 2
    frame = pd.DataFrame({"id": ids, "label": labels})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = {"batch_size": 8, "shuffle": False}
    inputs = {
        "csv": csv_input_fn(str(tmp_path / "rows.csv"), label_name="label", **options),
        "arrays": numpy_input_fn({"id": ids}, labels, **options),
        "called late": numpy_input_fn(lambda: ({"id": ids}, labels), **options),
        "frame": pandas_input_fn(frame[["id"]], frame["label"], **options),
        "table": table_input_fn(frame, label_name="label", **options),
        "batches": lambda: list(numpy_input_fn({"id": ids}, labels, **options)()),
    }
    found = {}
    for name, input_fn in inputs.items():
        columns = [tab.categorical_column_with_hash_bucket("id", 50, np.int64)]
        estimator = tab.LinearClassifier(columns, str(tmp_path / name), config=ec.RunConfig(tf_random_seed=1))
        estimator.train(input_fn)
        predicted = [one["logits"].item() for one in estimator.predict(input_fn)]
        found[name] = estimator.evaluate(input_fn), predicted
    assert all(one == found["csv"] for one in found.values())
    assert len(set(found["csv"][1])) > 10
