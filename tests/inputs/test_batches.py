"""Tests of traps 10 and 11: how a batch is unpacked, what stays on the host, and which differences between batches are
refused.
"""

import jax
import numpy as np
import pytest

import estimator_core as ec
from estimator_core._inputs import InputOptions, open_input
from estimator_core.errors import InputError


def drawn(*elements, mode="train"):
    return list(open_input(lambda: iter(elements), mode=mode))


def test_only_a_pair_is_features_and_labels():
    x, y = np.zeros((4, 2), np.float32), np.ones((4, 1), np.float32)
    two_keys, array, pair, listed = (drawn(e)[0] for e in ({"a": x, "b": y}, x, (x, y), [x, y]))
    assert set(two_keys.features) == {"a", "b"}
    assert two_keys.labels is None
    assert array.features.shape == (4, 2)
    assert array.labels is None
    for batch in (pair, listed):
        assert batch.features.shape == (4, 2)
        assert batch.labels.shape == (4, 1)


@pytest.mark.parametrize("length", [1, 3])
def test_a_batch_of_another_length_is_refused(length):
    with pytest.raises(InputError, match=r"^input_fn should return \(features, labels\) as a len 2 tuple\."):
        drawn((np.zeros((4, 2)),) * length)


def test_numbers_are_narrowed_to_what_a_device_holds():
    features = {
        "f64": np.array([0.5, 1.5]),
        "i64": np.array([-(2**31), 2**31 - 1]),
        "u64": np.array([0, 2**32 - 1], np.uint64),
        "c128": np.array([1j, 2j]),
        "f16": np.zeros(2, np.float16),
        "bool": np.array([True, False]),
        "u8": np.zeros(2, np.uint8),
    }
    batch = drawn(features)[0]
    assert {name: array.dtype.name for name, array in batch.features.items()} == {
        "f64": "float32", "i64": "int32", "u64": "uint32", "c128": "complex64", "f16": "float16", "bool": "bool",
        "u8": "uint8",
    }  # fmt: skip
    for name, array in features.items():
        np.testing.assert_array_equal(batch.features[name], array)


@pytest.mark.parametrize("value", [2**40 + 5, 2**31, -(2**31) - 1])
def test_an_integer_that_would_wrap_is_refused_by_name(value):
    with pytest.raises(InputError, match=rf"feature 'user/id' holds {value}, outside the range of int32"):
        drawn({"user": {"id": np.array([1, value])}})
    with pytest.raises(InputError, match=rf"^labels holds {value}"):
        drawn((np.zeros((2, 1)), np.array([1, value])))


def test_an_integer_that_would_wrap_is_refused_in_a_later_batch_too():
    with pytest.raises(InputError, match="feature 'id' holds 4294967296, outside the range of uint32"):
        drawn({"id": np.array([1], np.uint64)}, {"id": np.array([2**32], np.uint64)})


@pytest.mark.filterwarnings("error")
def test_a_finite_number_that_would_be_infinite_is_refused_by_name_and_row():
    for value in (1e300, -1e39, np.complex128(1e39j)):
        wrong = np.array([[1, np.inf], [np.nan, value]])
        with pytest.raises(
            InputError, match=r"feature 'x' holds .*e\+\d+j?\)? in row 1, which is infinite as (float|comp)"
        ):
            drawn({"x": np.array([[1, np.inf]], wrong.dtype)}, {"x": wrong})
    largest = float(np.finfo(np.float32).max)
    (batch,) = drawn({"x": np.array([np.inf, -np.inf, largest, 1e-60])})
    assert batch.features["x"].tolist() == [np.inf, -np.inf, largest, 0]
    data = ec.inputs.numpy_input_fn({"x": np.array([0, 0, 1e39])}, None, 1, shuffle=True, seed=1)
    with pytest.raises(InputError, match=r"feature 'x' holds 1e\+39 in row 2"):
        list(open_input(data, mode="train"))


def test_wide_numbers_stay_wide_where_jax_is_told_so():
    jax.config.update("jax_enable_x64", True)
    try:
        batch = drawn({"id": np.array([2**40 + 5]), "x": np.array([0.1])})[0]
    finally:
        jax.config.update("jax_enable_x64", False)
    assert batch.features["id"][0] == 2**40 + 5
    assert batch.features["x"].dtype == np.float64


def test_text_objects_bytes_and_dates_stay_beside_the_batch():
    features = {
        "x": np.zeros((2, 1), np.float32),
        "text": np.array(["a", "bc"]),
        "raw": np.array([b"a", b"b"]),
        "nested": {"thing": np.array([{}, None], dtype=object), "y": np.ones(2, np.float32)},
        "day": np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"),
    }
    batch = drawn((features, {"name": np.array(["cat", "dog"]), "id": np.array([0, 1])}))[0]
    assert set(batch.features) == {"x", "nested"}
    assert set(batch.features["nested"]) == {"y"}
    assert set(batch.labels) == {"id"}
    assert set(batch.host) == {"text", "raw", "nested/thing", "day", "labels/name"}
    assert batch.host["text"].tolist() == ["a", "bc"]


def test_a_bare_text_array_leaves_no_features_and_bare_text_labels_no_labels():
    batch = drawn((np.array(["a", "b"]), np.array(["x", "y"])))[0]
    assert batch.features == {}
    assert batch.labels is None
    assert batch.host["features"].tolist() == ["a", "b"]
    assert batch.host["labels"].tolist() == ["x", "y"]


def test_lists_of_strings_as_torch_collates_them_are_host_features_of_any_length():
    batches = drawn(
        {"x": np.zeros(2, np.float32), "text": ["a", "bc"]}, {"x": np.zeros(3, np.float32), "text": ["a", "b", "c"]}
    )
    assert [batch.host["text"].tolist() for batch in batches] == [["a", "bc"], ["a", "b", "c"]]
    assert set(batches[1].features) == {"x"}


def test_text_may_change_its_width():
    batches = drawn({"x": np.zeros(1), "t": np.array(["a"])}, {"x": np.zeros(1), "t": np.array(["abcdef"])})
    assert batches[1].host["t"].tolist() == ["abcdef"]


def test_text_inside_a_tuple_cannot_be_split_off():
    with pytest.raises(InputError, match=r"Strings or objects inside a tuple.*by name"):
        drawn({"pair": (np.zeros(2), np.array(["a", "b"]))})


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"a": np.zeros((2, 3), np.float32)}, "structure of the batches changed: feature 'b' missing"),
        (
            {"a": np.zeros((2, 3), np.float32), "b": np.zeros(2, np.int32), "c": np.zeros(2)},
            "structure of the batches changed: feature 'c' new",
        ),
        (
            ({"a": np.zeros((2, 3), np.float32), "b": np.zeros(2, np.int32)}, np.zeros(2)),
            "structure of the batches changed: labels new",
        ),
        (
            {"a": np.zeros((2, 3), np.float32), "b": np.zeros(2, np.float32)},
            r"dtype of feature 'b' changed between batches: it was int32 \(batch\) and is float32 \(batch\)",
        ),
        (
            {"a": np.zeros((2, 4), np.float32), "b": np.zeros(2, np.int32)},
            r"shape of feature 'a' changed between batches: it was \(batch, 3\) and is \(batch, 4\)",
        ),
        (
            {"a": np.zeros((2, 3, 1), np.float32), "b": np.zeros(2, np.int32)},
            r"shape of feature 'a' changed between batches: it was \(batch, 3\) and is \(batch, 3, 1\)",
        ),
    ],
)
def test_a_change_between_batches_is_refused_by_name_with_both(second, message):
    with pytest.raises(InputError, match=message):
        drawn({"a": np.zeros((2, 3), np.float32), "b": np.zeros(2, np.int32)}, second)


def test_a_change_is_refused_after_a_ragged_batch_too():
    shapes = [(4, 2), (4, 2), (3, 2), (4, 3)]
    with pytest.raises(InputError, match=r"shape of features changed.*\(batch, 2\) and is \(batch, 3\)"):
        drawn(*(np.zeros(shape, np.float32) for shape in shapes))


def test_a_ragged_batch_passes_at_its_true_shape():
    batches = drawn(*(np.zeros((rows, 2), np.float32) for rows in (4, 4, 3)))
    assert [batch.size for batch in batches] == [4, 4, 3]
    assert batches[2].features.shape == (3, 2)
    assert batches[2].weights is None


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ({}, "holds no arrays"),
        ({"x": 1.5}, "feature 'x' is a Python float"),
        ({"x": [1, 2]}, "feature 'x/0' is a Python int.*np.asarray"),
        ("text", "features is a Python str"),
        ({"x": np.float32(1)}, "no example axis"),
        ({"x": np.zeros((0, 2))}, "no examples"),
        ({"x": np.zeros((3, 2)), "y": np.zeros((2, 2))}, "3 examples in feature 'x' and 2 in feature 'y'"),
        ((np.zeros((3, 2)), np.zeros(4)), "3 examples in features and 4 in labels"),
    ],
)
def test_what_is_no_batch_is_refused(element, message):
    with pytest.raises(InputError, match=message):
        drawn(element)


def test_a_value_for_the_whole_batch_needs_no_example_axis():
    batch = drawn({"x": np.zeros((3, 2), np.float32), "temperature": np.float32(2)})[0]
    assert batch.size == 3
    assert batch.features["temperature"].shape == ()


class Tensor:
    """Imitates a tensor of another library: it has its own dtype and converts to a numpy array."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.shape = self._values.shape
        self.dtype = f"foreign.{self._values.dtype}"

    def __array__(self, dtype=None, copy=None):
        return self._values


class BareTensor:
    """Converts to a numpy array and has no other member."""

    def __init__(self, values):
        self._values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self._values


@pytest.mark.parametrize("kind", [Tensor, BareTensor])
def test_tensors_of_other_libraries_become_numpy_arrays(kind):
    batches = drawn(*((kind(np.full((2, 3), i)), kind(np.zeros(2, np.float32))) for i in range(3)))
    for i, batch in enumerate(batches):
        assert type(batch.features) is np.ndarray
        assert batch.features.dtype == np.int32
        assert (batch.features == i).all()
        assert type(batch.labels) is np.ndarray


def test_a_tensor_that_does_not_turn_into_an_array_is_named():
    class OnGpu:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    with pytest.raises(InputError, match=r"feature 'x' is a .*OnGpu.*cuda:0.*\.cpu\(\)"):
        drawn({"x": OnGpu()})


class Bucketed:
    """Sequences padded to the lengths of buckets, as their source declares."""

    input_options = InputOptions(fresh_arrays=True, varying_shapes=True)

    def __init__(self, *shapes):
        self.shapes = shapes

    def __iter__(self):
        return iter([np.zeros(shape, np.int32) for shape in self.shapes])


def test_a_source_may_declare_that_shapes_vary():
    batches = list(open_input(lambda: Bucketed((4, 8), (4, 16), (2, 8)), mode="train"))
    assert [batch.features.shape for batch in batches] == [(4, 8), (4, 16), (2, 8)]
    with pytest.raises(InputError, match=r"it was \(batch, 8\) and is \(batch, 8, 1\)"):
        list(open_input(lambda: Bucketed((4, 8), (4, 8, 1)), mode="train"))


def test_features_have_one_order_in_batches_of_every_size() -> None:
    """Eager models (`RunConfig(debug=True)`) receive the dict itself, so a short batch must keep the order of its
    columns.
    """
    sizes = (4, 4, 2, 4)
    elements = [{"z": np.ones((size, 1), np.float32), "a": np.zeros((size, 1), np.float32)} for size in sizes]
    for fresh in (True, False):
        source = open_input(ec.inputs.from_iterable(elements, fresh_arrays=fresh), mode="predict")
        assert [list(batch.features) for batch in source] == [["a", "z"]] * 4
