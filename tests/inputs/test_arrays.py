"""Tests of numpy_input_fn: which examples are in which batches, and what it refuses."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estimator_core as ec
from estimator_core._inputs import InputContext, open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.input_fn import shown
from estimator_core._inputs.transforms import with_transforms
from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError


def flat(batches):
    return list(itertools.chain.from_iterable(batches))


def rows(n, **options):
    """Returns the rows in their order, batch by batch."""
    input_fn = numpy_input_fn({"row": np.arange(n)}, **options)
    return [batch["row"].tolist() for batch in input_fn()]


def test_batches_run_over_the_borders_of_epochs_as_in_tf_estimator():
    # tf.estimator 2.15.1: numpy_input_fn(n=5, batch_size=2, num_epochs=3, shuffle=False)
    expected = [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4], [0, 1], [2, 3], [4]]
    assert rows(5, batch_size=2, num_epochs=3, shuffle=False) == expected
    assert rows(5, batch_size=2, num_epochs=3, shuffle=False, drop_remainder=True) == expected[:-1]
    endless = numpy_input_fn(np.arange(5), batch_size=2, num_epochs=None, shuffle=False)()
    assert [next(endless).tolist() for _ in range(10)] == [*expected[:-1], [4, 0], [1, 2], [3, 4]]


@given(
    n=st.integers(1, 40),
    batch_size=st.integers(1, 50),
    num_epochs=st.integers(1, 4),
    shuffle=st.booleans(),
    seed=st.integers(0, 2**63),
)
def test_every_epoch_has_every_example_once(n, batch_size, num_epochs, shuffle, seed):
    batches = rows(n, batch_size=batch_size, num_epochs=num_epochs, shuffle=shuffle, seed=seed)
    read = flat(batches)
    for epoch in range(num_epochs):
        assert sorted(read[epoch * n : (epoch + 1) * n]) == list(range(n))
    assert [len(batch) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert 1 <= len(batches[-1]) <= batch_size


def test_the_order_depends_on_seed_and_epoch_alone_and_stays_what_it_was():
    one = flat(rows(8, batch_size=4, num_epochs=2, shuffle=True, seed=3))
    assert one == flat(rows(8, batch_size=3, num_epochs=2, shuffle=True, seed=3))
    assert one != flat(rows(8, batch_size=4, num_epochs=2, shuffle=True, seed=4))
    assert one[:8] != one[8:]
    # Fixed values: a checkpoint of an older version must resume with the same order.
    assert one == [6, 7, 2, 1, 4, 5, 3, 0, 2, 1, 4, 0, 5, 7, 6, 3]


def test_the_seed_of_the_run_is_used_where_none_is_given():
    class Config:
        tf_random_seed = 11

    order = [
        labels.tolist() for _, labels in numpy_input_fn(np.zeros(30), np.arange(30), shuffle=True)(config=Config())
    ]
    assert order == rows(30, shuffle=True, seed=11)
    unset = numpy_input_fn({"row": np.arange(30)}, shuffle=True)
    assert [batch["row"].tolist() for batch in unset()] == rows(30, shuffle=True, seed=0)


@given(n=st.integers(1, 30), shards=st.integers(1, 4), shuffle=st.booleans(), even=st.booleans())
def test_processes_share_every_full_batch_and_all_read_a_short_last_one(n, shards, shuffle, even):
    input_fn = numpy_input_fn(np.arange(n), batch_size=1, shuffle=shuffle, seed=1, drop_remainder=even)
    contexts = [InputContext(num_input_pipelines=shards, input_pipeline_id=i) for i in range(shards)]
    parts = [[batch.tolist() for batch in input_fn(input_context=context)] for context in contexts]
    order = flat(rows(n, batch_size=1, shuffle=shuffle, seed=1))
    full = n // shards
    assert [[part[batch] for part in parts] for batch in range(full)] == [
        [[one] for one in order[batch * shards : (batch + 1) * shards]] for batch in range(full)
    ]
    rest = order[full * shards :]
    assert [part[full:] for part in parts] == [[rest] if rest and not even else []] * shards


def test_features_and_labels_keep_their_rows_together():
    x = {"a": np.arange(20), "b": np.arange(40).reshape(20, 2)}
    y = {"c": -np.arange(20), "name": np.array([f"n{i}" for i in range(20)])}
    for features, labels in numpy_input_fn(x, y, batch_size=7, num_epochs=2, shuffle=True, seed=5)():
        np.testing.assert_array_equal(features["b"], np.stack([2 * features["a"], 2 * features["a"] + 1], 1))
        np.testing.assert_array_equal(labels["c"], -features["a"])
        assert labels["name"].tolist() == [f"n{i}" for i in features["a"]]


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_batch_is_an_array_of_its_own(shuffle):
    x = np.arange(12.0, dtype=np.float32).reshape(6, 2)
    y = np.arange(6, dtype=np.int32)
    for features, labels in numpy_input_fn(x, y, batch_size=2, num_epochs=2, shuffle=shuffle)():
        assert not np.shares_memory(features, x)
        assert not np.shares_memory(labels, y)
        features[:], labels[:] = -1, -1
    assert x.min() == 0
    assert y.min() == 0


def test_a_loader_is_called_at_the_first_draw_of_each_iterator():
    calls = []

    def load():
        calls.append(1)
        return {"x": np.arange(4)}, np.arange(4)

    input_fn = numpy_input_fn(load, batch_size=2, shuffle=False)
    source = open_input(input_fn, mode="train")
    assert calls == []
    assert len(list(source)) == 2
    assert calls == [1]
    assert len(list(open_input(input_fn, mode="train"))) == 2
    assert calls == [1, 1]


def test_a_loader_may_return_features_alone_and_nothing_else():
    assert next(numpy_input_fn(lambda: np.arange(3), shuffle=False)()).tolist() == [0, 1, 2]
    with pytest.raises(ArgumentError, match=r"must return x or \(x, y\); it returned a tuple of 3"):
        next(numpy_input_fn(lambda: (np.arange(3),) * 3, shuffle=False)())


def test_a_memory_mapped_array_is_read_and_narrowed_batch_by_batch(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(10.0).reshape(5, 2))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for shuffle in (False, True):
        batches = list(open_input(numpy_input_fn(mapped, batch_size=2, shuffle=shuffle), mode="infer"))
        values = np.concatenate([batch.features for batch in batches])
        assert values.dtype == np.float32
        assert sorted(values[:, 0].tolist()) == [0, 2, 4, 6, 8]
        assert all(type(batch.features) is np.ndarray for batch in batches)


A = np.arange(3)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((A,), {}, "shuffle must be provided and explicitly set as boolean"),
        ((A,), {"shuffle": 1}, "shuffle must be provided and explicitly set as boolean"),
        (({},), {"shuffle": True}, "x cannot be an empty dict"),
        ((np.zeros((0, 3)),), {"shuffle": True}, "x cannot be an empty array"),
        ((A, {}), {"shuffle": True}, r"y cannot be empty dict, use None instead\."),
        (
            ({"a": A}, {"a": A}),
            {"shuffle": True},
            r"1 duplicate keys are found in both x and y: \['a'\]",
        ),
        (
            ({"a": A, "b": np.arange(4)},),
            {"shuffle": True},
            r"Length of tensors in x and y is mismatched. All elements in x and y must have the same length.\n"
            r"Shapes in x: \{'a': \(3,\), 'b': \(4,\)\}\nShapes in y: None",
        ),
        ((A, np.arange(4)), {"shuffle": True}, r"mismatched(?s:.)*Shapes in x: \(3,\)\nShapes in y: \(4,\)"),
        ((np.float32(3),), {"shuffle": True}, r"x has no example axis: its shape is \(\)"),
        ((A,), {"shuffle": True, "batch_size": 0}, "batch_size must be at least 1"),
        ((A,), {"shuffle": True, "num_epochs": 0}, "num_epochs must be at least 1"),
        ((A,), {"shuffle": True, "seed": -1}, "seed must be at least 0"),
        ((A,), {"shuffle": True, "seed": 1.5}, "seed must be an integer"),
        ((A,), {"shuffle": True, "ragged": "drop"}, 'ragged must be "exact"'),
        ((lambda: A, A), {"shuffle": True}, r"y must be None if x is a function"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused_at_once(arguments, options, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        numpy_input_fn(*arguments, **options)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2],), {"shuffle": True}, "x must be a dict or array; got list"),
        (({"a": [1, 2]},), {"shuffle": True}, r"x\['a'\] must be a dict or array; got list"),
        ((A, [1, 2, 3]), {"shuffle": True}, "y must be a dict or array; got list"),
        (("data.npy",), {"shuffle": True}, "x must be a dict or array; got str"),
        ((A,), {"shuffle": True, "batch_size": 2.0}, "batch_size must be an integer"),
        ((A,), {"shuffle": True, "num_epochs": True}, "num_epochs must be an integer"),
    ],
)
def test_types_that_cannot_be_used_are_refused_at_once(arguments, options, message):
    with pytest.raises(ArgumentTypeError, match=message):
        numpy_input_fn(*arguments, **options)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        (({"id": np.array([1, 2, 2**40 + 5])},), "feature 'id' holds 1099511627781"),
        ((A, np.array([0, 1, -(2**31) - 1])), "labels holds -2147483649"),
        ((lambda: {"id": np.array([1, 2, 2**40 + 5])},), "feature 'id' holds 1099511627781"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda one: one, ec.inputs.from_iterable, lambda one: lambda: one])
def test_an_integer_that_would_wrap_is_refused_before_any_batch(arrays: Any, told: str, wrap: Any):
    source = open_input(wrap(numpy_input_fn(*arrays, batch_size=1, shuffle=False)), mode="train")
    with pytest.raises(InputError, match=f"^{told}"):
        next(source)


class _Buckets:
    """A host transform that accepts 64-bit ids."""

    name, version, files = "buckets", 1, {}

    def config(self) -> dict[str, Any]:
        return {}

    def apply(self, batch: Any) -> dict[str, np.ndarray]:
        return {**batch, "id": (batch["id"] % 7).astype(np.int32)}


def test_a_host_transform_takes_integers_that_devices_do_not_hold():
    ids = np.array([1, 2**40 + 5, -(2**50)])
    source = with_transforms(numpy_input_fn({"id": ids}, batch_size=2, shuffle=False), features=[_Buckets()])
    batches = list(open_input(source, mode="train"))
    assert np.concatenate([batch.features["id"] for batch in batches]).tolist() == (ids % 7).tolist()


class _Other(_Buckets):
    def apply(self, batch: Any) -> dict[str, np.ndarray]:
        return {**batch, "x": batch["x"] + 1}


class _Same(_Buckets):
    def apply(self, batch: Any) -> dict[str, np.ndarray]:
        return dict(batch)


def _seen(input_fn: Any) -> Any:
    return shown(input_fn, [_SeesAll()])


class _SeesAll(ec.Hook):
    def see(self, features: Any, labels: Any) -> None:
        """Receives each batch."""


@pytest.mark.parametrize(
    "wrap",
    [
        lambda one: with_transforms(one, features=[_Other()]),
        lambda one: with_transforms(one, labels=[_Same()]),
        _seen,
        lambda one: with_transforms(_seen(one), features=[_Other()]),
    ],
)
def test_what_no_transform_takes_is_refused_before_any_batch_whichever_row_is_too_wide(wrap: Any):
    x = {"x": np.zeros(8), "id": np.array([0] * 7 + [2**40])}
    arrays = numpy_input_fn(x, {"y": np.zeros(8)}, batch_size=1, shuffle=False)
    source = open_input(wrap(arrays), mode="train")
    with pytest.raises(InputError, match=r"^feature 'id' holds 1099511627776"):
        next(source)


def test_labels_that_are_too_wide_do_not_matter_to_predictions():
    source = open_input(numpy_input_fn(A, np.array([0, 1, 2**40]), shuffle=False), mode="infer")
    assert next(source).labels is None


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4", ">i8", ">u2"])
def test_arrays_in_another_byte_order_hold_the_same_numbers(dtype):
    given_arrays = {"x": np.arange(3).astype(dtype)}
    native = np.dtype(dtype).newbyteorder("=")
    expected = next(open_input(numpy_input_fn({"x": np.arange(3).astype(native)}, shuffle=False), mode="eval"))
    for source in (numpy_input_fn(given_arrays, shuffle=False), lambda: [given_arrays]):
        found = next(open_input(source, mode="eval")).features["x"]
        assert found.dtype == expected.features["x"].dtype
        assert found.dtype.isnative
        assert found.tolist() == [0, 1, 2]


@pytest.mark.parametrize("missing", [None, np.nan])
def test_strings_of_numpys_string_dtype_are_objects(missing):
    """Columns of words and class labels refused them as strings."""
    for dtype in (np.dtypes.StringDType(), np.dtypes.StringDType(na_object=missing)):
        given_arrays = {"x": np.array(["a", "a longer string of the arena"], dtype), "k": np.arange(2)}
        if hasattr(dtype, "na_object"):
            given_arrays["x"][0] = missing
        for source in (numpy_input_fn(given_arrays, shuffle=False), lambda: [given_arrays]):  # noqa: B023
            found = next(open_input(source, mode="eval")).host["x"]
            assert found.dtype == object
            assert found.tolist() == given_arrays["x"].tolist()


def test_masked_values_are_refused():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for make in (
        lambda: numpy_input_fn({"x": masked}, shuffle=False),
        lambda: next(open_input(lambda: [{"x": masked}], mode="eval")),
        lambda: list(open_input(lambda: [{"x": np.ma.array([1.0, 2.0])}, {"x": masked}], mode="eval")),
    ):
        with pytest.raises(InputError, match=r"x.*has masked values, which a batch cannot hold"):
            make()
    assert rows_of_unmasked(np.ma.array([1.0, 2.0])) == [1.0, 2.0]


def rows_of_unmasked(array):
    return next(open_input(numpy_input_fn({"x": array}, shuffle=False), mode="eval")).features["x"].tolist()


def test_two_arrays_of_one_name_are_refused():
    with pytest.raises(ArgumentError, match=r"x has two arrays with the same name: \['1', '1'\]"):
        numpy_input_fn({1: np.arange(2), "1": np.arange(2)}, shuffle=False)


def test_lists_of_rows_of_different_lengths_are_told_what_to_become():
    """The advice must not be only np.asarray, because it raises for such lists."""
    lists = [[1.0], [2.0, 3.0], []]
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.asarray(lists)
    with pytest.raises(ArgumentTypeError, match=r"a = np\.empty\(len\(lists\), object\); a\[:\] = lists") as told:
        numpy_input_fn({"a": lists}, shuffle=False)
    names = {"np": np, "lists": lists}
    exec(str(told.value).split(" in length ")[1].rstrip("."), names)
    (batch,) = numpy_input_fn({"a": names["a"]}, shuffle=False)()
    assert batch["a"].tolist() == lists
