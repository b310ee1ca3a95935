"""Tests of pandas_input_fn."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.inputs import open_input
from estimator_inputs import pandas_input_fn


def frame(n=5):
    return pd.DataFrame({"age": np.arange(n), "height": np.arange(n) + 0.5, "city": [f"c{i}" for i in range(n)]})


def test_columns_become_features_and_text_stays_on_the_host():
    batches = list(open_input(pandas_input_fn(frame(), pd.Series(range(5)), batch_size=2, shuffle=False), mode="train"))
    assert [batch.labels.tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
    assert {name: array.dtype.name for name, array in batches[0].features.items()} == {
        "age": "int32",
        "height": "float32",
    }
    assert batches[1].host["city"].tolist() == ["c2", "c3"]


def test_a_frame_of_labels_becomes_a_dict_of_labels():
    labels = pd.DataFrame({"age": [5, 6], "b": [7.0, 8.0]})
    x = pd.DataFrame({"x": [1, 2]})
    features, found = next(pandas_input_fn(x, labels, shuffle=False)())
    assert list(features) == ["x"]
    assert {name: array.tolist() for name, array in found.items()} == {"age": [5, 6], "b": [7.0, 8.0]}


def test_shuffled_rows_stay_together_and_continue_from_a_position():
    def make():
        return pandas_input_fn(frame(20), frame(20)["age"] * 2, batch_size=3, shuffle=True, seed=2, num_epochs=2)

    batches = list(open_input(make(), mode="train"))
    for batch in batches:
        np.testing.assert_array_equal(batch.labels, batch.features["age"] * 2)
        assert batch.host["city"].tolist() == [f"c{i}" for i in batch.features["age"]]
    resumed = list(open_input(make(), mode="train", position=batches[3].position))
    assert [b.labels.tolist() for b in resumed] == [b.labels.tolist() for b in batches[4:]]


def test_later_changes_of_the_frame_do_not_reach_the_input():
    x = frame()
    input_fn = pandas_input_fn(x, shuffle=False)
    x.loc[:, "age"] = -1
    assert next(input_fn())["age"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("series", "dtype"),
    [
        (pd.Series([1, 2], dtype="Int64"), np.int32),
        (pd.Series([1.5, None], dtype="Float32"), np.float32),
        (pd.Series([True, False], dtype="boolean"), np.bool_),
        (pd.Series([1, 2], dtype="int8"), np.int8),
    ],
)
def test_nullable_columns_become_plain_arrays(series, dtype):
    batch = next(open_input(pandas_input_fn(pd.DataFrame({"x": series}), shuffle=False), mode="train"))
    assert batch.features["x"].dtype == dtype


def test_categories_and_dates_stay_on_the_host():
    x = pd.DataFrame({"x": [1, 2], "c": pd.Categorical(["a", "b"]), "d": pd.to_datetime(["2024-01-01", "2024-01-02"])})
    batch = next(open_input(pandas_input_fn(x, shuffle=False), mode="train"))
    assert list(batch.features) == ["x"]
    assert batch.host["c"].tolist() == ["a", "b"]
    assert batch.host["d"].dtype.kind == "M"


X = frame()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((X,), {}, "shuffle must be provided and explicitly set as boolean"),
        (
            (X, pd.Series(range(5), index=range(1, 6))),
            {"shuffle": True},
            "Index for x and y are mismatched.\nIndex for x:",
        ),
        ((X, pd.Series(range(4))), {"shuffle": True}, "Index for x and y are mismatched."),
        (
            (X, pd.Series(range(5))),
            {"shuffle": True, "target_column": "age"},
            "Cannot use name age for target column: DataFrame already has a column with that name",
        ),
        ((X[[]],), {"shuffle": True}, "x cannot be an empty dict"),
        ((X[:0],), {"shuffle": True}, "x cannot be an empty array"),
        (
            (pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]),),
            {"shuffle": True},
            "several columns with the same name",
        ),
    ],
)
def test_frames_that_cannot_be_used_are_refused(arguments, options, message):
    with pytest.raises(ArgumentError, match=message):
        pandas_input_fn(*arguments, **options)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.zeros(3),), {"shuffle": True}, "x must be a pandas DataFrame; got ndarray"),
        ((X, [1, 2]), {"shuffle": True}, "y must be a pandas Series or DataFrame; got list"),
        ((X,), {"shuffle": True, "target_column": 3}, "target_column must be a string type"),
    ],
)
def test_other_types_are_refused(arguments, options, message):
    with pytest.raises(ArgumentTypeError, match=message):
        pandas_input_fn(*arguments, **options)


def test_dictionaries_of_arrow_are_like_their_values():
    """Their integers beside a missing value were objects, which columns of ids refuse."""
    values = pd.Series([2**24 + 1, 5, None], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.int64())))
    words = pd.Series(["a", None, "b"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())))
    frame = pd.DataFrame({"x": values[1:], "w": words[1:]})
    (features,) = pandas_input_fn(frame, shuffle=False)()
    np.testing.assert_array_equal(features["x"], [5, np.nan])
    assert features["w"].tolist() == [None, "b"]
    with pytest.raises(ArgumentError, match=r"x\['x'\] has missing values .* cannot represent 16777217 of row 0"):
        pandas_input_fn(pd.DataFrame({"x": values}), shuffle=False)


@pytest.mark.parametrize(("dtype", "known"), [("Int64", 1), ("boolean", True), ("Float32", 1.0)])
def test_missing_values_of_nullable_columns_are_nan(dtype, known):
    frame = pd.DataFrame({"a": pd.array([known, None], dtype=dtype), "b": pd.array([known, known], dtype=dtype)})
    features = next(iter(pandas_input_fn(frame, batch_size=2, shuffle=False)()))
    assert features["a"].dtype == np.float32
    np.testing.assert_array_equal(features["a"], [1.0, np.nan])
    assert features["b"].tolist() == [known, known]
