"""Tests of the host part of columns: the forms of rows, the refusals, and how it is written and read back."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estimator_canned_tabular as tab
import estimator_core as ec
from plugins.canned_tabular.tests import table_recordings
from plugins.canned_tabular.tests.columns_by_hand import host_ids

WORDS = tab.categorical_column_with_vocabulary_list("c", ["R", "G", "B"])


def test_fingerprints_as_recorded():
    cases = table_recordings.load("fingerprints")
    texts = [bytes(value) for value in cases["texts"]]
    assert (tab.fingerprint64(texts) % np.uint64(cases["size"])).tolist() == cases["buckets"]
    for name in ("crossed", "crossed_with_key"):
        crossed = tab.crossed_column(["a", "b", "i"], 1_000_003, cases[name]["key"], dense_strings=True)
        batch = {key: np.array(cases["columns"][key]) for key in ("a", "b", "i")}
        assert sorted(map(tuple, crossed.host_ids(batch).ids.tolist())) == sorted(map(tuple, cases[name]["ids"]))


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=30))
@settings(max_examples=40)
def test_the_hash_of_a_string_does_not_depend_on_its_neighbours(texts):
    together = tab.fingerprint64(texts)
    assert together.tolist() == [tab.fingerprint64([text])[0] for text in texts]


@pytest.mark.parametrize(
    "words",
    [
        np.array(["R", "X", "", "B"]),
        np.array([b"R", b"X", b"", b"B"]),
        np.array(["R", "X", None, "B"], object),
        np.array([b"R", "X", float("nan"), b"B"], object),
        np.array([["R"], ["X"], [""], ["B"]]),
    ],
    ids=["text", "bytes", "none", "nan", "two axes"],
)
def test_rows_of_text(words):
    assert host_ids(WORDS, c=words) == [[0], [-1], [-1], [2]]


def ragged(*rows):
    made = np.empty(len(rows), object)
    made[:] = rows
    return made


def test_rows_of_different_lengths():
    with pytest.raises(tab.FeatureColumnError, match=r"'c' .* rows of 0 to 3 values.*max_values="):
        host_ids(WORDS, c=ragged(["R"], [], ["G", "B", "X"]))
    kept = tab.categorical_column_with_vocabulary_list("c", ["R", "G", "B"], max_values=3)
    assert host_ids(kept, c=ragged(["R"], [], ["G", "B", "X"])) == [[0, -1, -1], [-1, -1, -1], [1, 2, -1]]
    assert host_ids(kept, c=np.array([["G", "R"]])) == [[1, 0, -1]]
    with pytest.raises(tab.FeatureColumnError, match=r"4 values in row 1 of the batch, more than max_values=3"):
        host_ids(kept, c=ragged(["R"], ["R"] * 4))


@pytest.mark.parametrize(
    ("column", "features", "message"),
    [
        (WORDS, {"d": ["R"]}, "'c' of column 'c' is not in the features dictionary. Found: \\['d'\\]"),
        (WORDS, {"c": [1]}, "must hold strings, given integers"),
        (WORDS, {"c": [1.5]}, "must hold strings or integers, given: float64"),
        (WORDS, {"c": np.array(["R", 2.5], object)}, "given: 2.5 among strings"),
        (tab.categorical_column_with_identity("c", 3), {"c": ["R"]}, "must hold integers, given strings"),
    ],
)
def test_features_that_cannot_be_read(column, features, message):
    with pytest.raises(tab.FeatureColumnError, match=message):
        host_ids(column, **features)


def test_sequences_must_be_as_long_as_each_other():
    one = tab.sequence_categorical_column_with_identity("a", 5)
    plan = tab.FeaturePlan.of([tab.embedding_column(one, 2), tab.sequence_numeric_column("b", max_values=2)])
    (transform,) = plan.transforms()
    batch = {"a": np.array([[1, 2], [1, -1]]), "b": ragged([1.0, 2.0], [1.0])}
    found = transform.apply(batch)
    assert found["a.lengths"].tolist() == found["b.lengths"].tolist() == [2, 1]
    assert found["b.numbers"].tolist() == [[[1.0], [2.0]], [[1.0], [0.0]]]
    with pytest.raises(tab.FeatureColumnError, match="in row 1 of the batch 'a' has 1 steps and 'b' 2"):
        transform.apply({**batch, "b": ragged([1.0, 2.0], [1.0, 2.0])})


@pytest.mark.parametrize("unread", [(), ("a.lengths", "b.lengths")])
def test_features_that_are_no_sequences_need_no_equal_lengths(unread):
    """This includes features that are numbers and categories, and features that are named like lengths of sequences."""
    words = [tab.categorical_column_with_identity(name, 9) for name in ("a", "b")]
    (transform,) = tab.FeaturePlan.of([*words, *(tab.numeric_column(word.key) for word in words)]).transforms()
    features = {name: ec.export.Feature((None,), "int64") for name in ("a", "b", *unread)}
    program = transform.program(features)
    assert not any(isinstance(operation, ec.export.EqualLengths) for operation in program.operations)
    sequences = [tab.sequence_categorical_column_with_identity(name, 9) for name in ("a", "b")]
    (transform,) = tab.FeaturePlan.of(sequences).transforms()
    features |= {name: ec.export.Feature((None, 3), "int64") for name in ("a", "b")}
    (equal,) = [one for one in transform.program(features).operations if isinstance(one, ec.export.EqualLengths)]
    assert len(equal.inputs) == 2
    assert not set(equal.inputs) & set(unread)


def test_it_is_written_and_read_back(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("R\nG\n\u2028\n")
    age = tab.bucketized_column(tab.numeric_column("age", normalizer_fn=None), [10.0, 20.0])
    listed = tab.categorical_column_with_vocabulary_list("d", [3, 1], num_oov_buckets=2)
    columns = [
        tab.categorical_column_with_vocabulary_file("c", path, num_oov_buckets=1),
        listed,
        tab.crossed_column(["c", age, tab.crossed_column(["e", listed], 5)], 50),
        tab.weighted_categorical_column(tab.categorical_column_with_identity("i", 4, 1), "w"),
        tab.categorical_column_with_hash_bucket("h", 5, "int64", max_values=2),
    ]
    (transform,) = tab.FeaturePlan.of(columns).transforms()
    batch = {
        "c": np.array(["\u2028", "X"]),
        "d": np.array([1, 2]),
        "e": np.array(["x", ""]),
        "age": np.array([15.0, 30.0]),
        "i": np.array([[0, 9], [-1, 2]]),
        "w": np.array([[1.0, 2.0], [0.0, 0.5]]),
        "h": np.array([7, 8]),
        "other": np.array([1, 2]),
    }
    made = transform.apply(batch)
    assert made["c.ids"].tolist() == [[2], [3]]
    json.dumps(transform.config())
    ec.inputs.save_transforms([transform], tmp_path / "saved")
    (again,) = ec.inputs.load_transforms(tmp_path / "saved", {"tabular_features": tab.FeatureIds}.__getitem__)
    assert again.config() == transform.config()
    found = again.apply(batch)
    assert found.keys() == made.keys() == {"other", *(name for name in made if "." in name)}
    for name, value in made.items():
        assert found[name].tolist() == value.tolist(), name


def test_two_columns_of_one_name():
    small, large = (tab.categorical_column_with_hash_bucket("c", size) for size in (10, 100))
    plan = tab.FeaturePlan.of([small, tab.indicator_column(large)])
    (transform,) = plan.transforms()
    made = transform.apply({"c": np.array(["hello"])})
    assert made[f"{plan.outputs[small]}.ids"].tolist() == [[6]]
    assert made[f"{plan.outputs[large]}.ids"].tolist() == [[96]]
