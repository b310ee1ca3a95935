"""Tests of inputs that declare themselves endless: an evaluation of all of their examples is refused (fault 18)."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import pytest

from estimator_core._inputs import open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.input_fn import from_iterable

BATCH = {"x": np.zeros((4, 2), np.float32)}


class Dataset:
    """Imitates tf.data: repeated without end, read once, or of unknown size."""

    def __init__(self, cardinality: int) -> None:
        self._cardinality = cardinality

    def cardinality(self) -> Any:
        return np.int64(self._cardinality)

    def as_numpy_iterator(self) -> Any:
        return itertools.repeat(BATCH)


class Broken(Dataset):
    """Raises an error when its size is read."""

    def cardinality(self) -> Any:
        raise RuntimeError("asked too early")


class Repeated(list[Any]):
    """Imitates a repeated data set of grain."""

    def __len__(self) -> int:
        return sys.maxsize


ARRAYS = np.zeros((8, 2), np.float32)
INPUTS = {
    "tf.data, repeated": (lambda: Dataset(-1), True),
    "tf.data, once": (lambda: Dataset(1), False),
    "tf.data, unknown": (lambda: Dataset(-2), False),
    "tf.data that cannot say": (lambda: Broken(1), False),
    "grain, repeated": (lambda: Repeated([BATCH]), True),
    "a list": (lambda: [BATCH], False),
    "a generator": (lambda: (BATCH for _ in range(2)), False),
    "arrays, repeated": (numpy_input_fn(ARRAYS, batch_size=4, num_epochs=None, shuffle=False), True),
    "arrays, once": (numpy_input_fn(ARRAYS, batch_size=4, num_epochs=1, shuffle=False), False),
    "wrapped": (lambda: from_iterable(Dataset(-1), fresh_arrays=True), True),
}


@pytest.mark.parametrize("name", INPUTS)
def test_it_is_known_after_the_first_draw(name: str) -> None:
    input_fn, endless = INPUTS[name]
    source = open_input(input_fn, mode="eval")
    next(source)
    assert source.endless is endless
    source.close()
