"""Tests of padding: it is added only if the input requests it, with the mask that marks the rows that are examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core._inputs import open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.input_fn import from_iterable
from estimator_core.errors import ArgumentError, InputError


@given(n=st.integers(1, 20), batch_size=st.integers(1, 8), shuffle=st.booleans())
def test_the_weighted_rows_are_the_examples_exactly_once(n, batch_size, shuffle):
    input_fn = numpy_input_fn(
        {"x": np.arange(1, n + 1)}, -np.arange(1, n + 1), batch_size=batch_size, shuffle=shuffle, ragged="pad"
    )
    seen = []
    for batch in open_input(input_fn, mode="eval"):
        assert len(batch.features["x"]) == len(batch.labels) == len(batch.weights) == batch_size
        assert batch.weights.dtype == np.float32
        assert batch.weights.sum() == batch.size
        real = batch.weights > 0
        seen += batch.features["x"][real].tolist()
        np.testing.assert_array_equal(batch.labels, -batch.features["x"])
        assert set(batch.features["x"][~real]) <= {batch.features["x"][real][-1]}
    assert sorted(seen) == list(range(1, n + 1))
    assert batch.position.examples == n


def test_host_features_are_filled_up_with_the_rest():
    input_fn = numpy_input_fn(
        {"x": np.arange(3), "t": np.array(["a", "b", "c"])}, batch_size=2, shuffle=False, ragged="pad"
    )
    last = list(open_input(input_fn, mode="eval"))[-1]
    assert last.host["t"].tolist() == ["c", "c"]
    assert last.weights.tolist() == [1, 0]


def test_a_foreign_input_is_filled_up_to_its_first_batch_or_the_size_given():
    batches = [{"x": np.zeros((rows, 2), np.float32)} for rows in (3, 3, 1)]
    assert [b.weights.tolist() for b in open_input(from_iterable(batches, ragged="pad"), mode="eval")] == [
        [1, 1, 1],
        [1, 1, 1],
        [1, 0, 0],
    ]
    wide = list(open_input(from_iterable(batches, ragged="pad", batch_size=4), mode="eval"))
    assert [(len(b.features["x"]), b.size) for b in wide] == [(4, 3), (4, 3), (4, 1)]


def test_a_batch_larger_than_the_size_to_fill_up_to_is_refused():
    batches = [{"x": np.zeros((rows, 2), np.float32)} for rows in (2, 3)]
    with pytest.raises(InputError, match=r"A batch has 3 examples, more than the 2.*batch_size"):
        list(open_input(from_iterable(batches, ragged="pad"), mode="eval"))


@pytest.mark.parametrize("options", [{"ragged": "drop"}, {"batch_size": 0}])
def test_unknown_options_are_refused(options):
    with pytest.raises(ArgumentError):
        from_iterable([], **options)


def test_an_input_that_pads_by_itself_says_so_with_is_real_example():
    batches = [{"x": np.zeros(3, np.float32), "is_real_example": np.array(mask)} for mask in ([1, 1, 1], [1, 0, 0])]
    drawn = list(open_input(lambda: batches, mode="eval"))
    assert [b.weights.tolist() for b in drawn] == [[1, 1, 1], [1, 0, 0]]
    assert [b.size for b in drawn] == [3, 1]
    assert drawn[-1].position.examples == 4
    assert "is_real_example" in drawn[0].features


@pytest.mark.parametrize("mask", [[2, 1, 0], [[1, 0], [1, 0], [1, 1]]])
def test_is_real_example_must_be_a_mask(mask):
    with pytest.raises(InputError, match="'is_real_example' must hold a 0 or 1 for each of the batch's 3 examples"):
        next(open_input(lambda: [{"x": np.zeros(3), "is_real_example": np.array(mask)}], mode="eval"))


def test_nothing_is_padded_where_nobody_asks():
    source = open_input(numpy_input_fn(np.arange(3), batch_size=2, shuffle=False), mode="eval")
    assert [(batch.size, batch.weights) for batch in source] == [(2, None), (1, None)]


@pytest.mark.parametrize("drawn", [1, 2, 3])
def test_a_resumed_input_is_filled_up_to_the_first_batch_of_all(drawn):
    batches = [{"x": np.full((rows, 1), rows, np.float32)} for rows in (3, 1, 2, 3)]

    def shapes(source):
        return [(batch.features["x"].shape, batch.size) for batch in source]

    input_fn = from_iterable(batches, ragged="pad")
    source = open_input(input_fn, mode="train")
    before = [next(source) for _ in range(drawn)]
    resumed = open_input(input_fn, mode="train", position=before[-1].position)
    assert shapes(resumed) == shapes(source)
