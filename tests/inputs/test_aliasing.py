"""Tests of trap 3: an input that refills its buffer must not change batches it already yielded."""

import jax
import numpy as np
import pytest

from estimator_core._inputs import open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.input_fn import from_iterable
from estimator_core._inputs.prefetch import prefetch


def aligned(shape, dtype=np.float32):
    """Returns an array aligned to 64 bytes, which jax.device_put aliases on CPU instead of copying."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def refilling():
    buffer, labels, text = aligned((64, 16)), np.zeros(64, np.int32), np.zeros(64, dtype=object)
    for i in range(4):
        buffer[:], labels[:], text[:] = i, i, str(i)
        yield {"x": buffer, "text": text}, labels


def test_a_batch_keeps_its_values_when_the_input_refills_its_buffer():
    source = open_input(refilling, mode="train")
    placed = [(jax.device_put(b.features["x"]), jax.device_put(b.labels), b.host["text"]) for b in source]
    for i, (x, labels, text) in enumerate(placed):
        assert (np.asarray(x) == i).all()
        assert (np.asarray(labels) == i).all()
        assert set(text) == {str(i)}


@pytest.mark.parametrize("mode", ["train", "infer"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", ["pair", "dict", "alone"])
def test_a_batch_like_the_one_before_keeps_its_values_too(shape, dtype, mode):
    def refills():
        buffer, labels = aligned((64, 16), dtype), np.zeros(64, np.int32)
        for i in range(4):
            buffer[:], labels[:] = i, i
            yield buffer if shape == "alone" else ({"x": buffer} if shape == "dict" else buffer, labels)

    batches = list(open_input(refills, mode=mode))
    for i, batch in enumerate(batches):
        x = batch.features["x"] if shape == "dict" else batch.features
        assert (x.dtype, x.min(), x.max()) == (np.float32, i, i)
        assert (batch.labels is None) == (mode == "infer" or shape == "alone")
        assert batch.labels is None or (batch.labels == i).all()


def test_a_prefetched_batch_keeps_its_values_too():
    source = prefetch(open_input(refilling, mode="train"), lambda b: b, depth=3)
    batches = list(source)
    assert [float(b.features["x"].max()) for b in batches] == [0, 1, 2, 3]
    assert [float(b.features["x"].min()) for b in batches] == [0, 1, 2, 3]
    source.close()


def test_a_source_that_promises_fresh_arrays_is_not_copied():
    array = np.zeros((4, 2), np.float32)
    declared = next(open_input(from_iterable([{"x": array}], fresh_arrays=True), mode="train"))
    assert declared.features["x"] is array
    foreign = next(open_input(lambda: [{"x": array}], mode="train"))
    assert not np.shares_memory(foreign.features["x"], array)


def test_our_own_arrays_are_handed_over_without_a_second_copy():
    source = open_input(numpy_input_fn(np.zeros((8, 2), np.float32), batch_size=4, shuffle=True), mode="train")
    assert source.fresh_arrays
    first, second = source
    assert not np.shares_memory(first.features, second.features)
