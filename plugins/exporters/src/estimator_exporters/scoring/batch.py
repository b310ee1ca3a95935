"""Batches of rows between the reader of a file and a signature."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from estimator_core.export import Feature

#: The approximate count of numbers in a batch: a thousand rows of 256 tokens, or `_MOST_ROWS` rows of a table.
_ELEMENTS = 1 << 18
_FEWEST_ROWS, _MOST_ROWS = 16, 16384


class Batch(NamedTuple):
    """Rows of one file.

    Attributes:
        path: the path of the file.
        first: the number of the first row among the readable rows of the file, from 0.
        arrays: the inputs of the signature by name, one row per example.
        kept: the columns that are copied to the output.
    """

    path: Path
    first: int
    arrays: Mapping[str, np.ndarray]
    kept: Mapping[str, np.ndarray]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.arrays.values())))

    def cut(self, start: int, stop: int) -> Batch:
        """Returns the rows from `start` to `stop`."""
        arrays = {name: array[start:stop] for name, array in self.arrays.items()}
        kept = {name: array[start:stop] for name, array in self.kept.items()}
        return Batch(self.path, self.first + start, arrays, kept)


def batch_size_for(inputs: Mapping[str, Feature]) -> int:
    """Returns the default number of rows per batch. Wider rows lead to fewer of them.

    Example:
        >>> batch_size_for({"x": Feature((None,))}), batch_size_for({"image": Feature((None, 64, 64, 1))})
        (16384, 64)
    """
    width = sum(math.prod(size or 1 for size in feature.shape[1:]) for feature in inputs.values())
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _ELEMENTS // max(width, 1)))


def fixed_rows(inputs: Mapping[str, Feature]) -> int | None:
    """Returns the batch size of a signature with one fixed batch size, or None if the batch size is free.

    Example:
        >>> fixed_rows({"x": Feature((4, 3))}), fixed_rows({"x": Feature((None, 3))})
        (4, None)
    """
    sizes = {feature.shape[0] if feature.shape else None for feature in inputs.values()}
    return sizes.pop() if len(sizes) == 1 else None
