"""Columns of a block of rows: arrays, or ragged values with a different number per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Ragged:
    """Rows of different lengths.

    Attributes:
        values: [total, ...], the values of all rows, row after row.
        lengths: int64[rows], the number of values per row.
        fill: the value that pads a dense array.
    """

    values: np.ndarray
    lengths: np.ndarray
    fill: Any

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: np.ndarray) -> Ragged:
        """Returns the rows with these numbers."""
        begins = np.cumsum(self.lengths) - self.lengths
        lengths = self.lengths[rows]
        return Ragged(values=self.values[spread(begins[rows], lengths)], lengths=lengths, fill=self.fill)

    def cut(self, piece: slice) -> Ragged:
        """Returns a slice of the rows, in order."""
        start, stop, _ = piece.indices(len(self.lengths))
        begin = int(self.lengths[:start].sum())
        lengths = self.lengths[start:stop]
        return Ragged(values=self.values[begin : begin + int(lengths.sum())], lengths=lengths, fill=self.fill)

    def dense(self) -> np.ndarray:
        """Returns [rows, longest, ...].

        The longest length is rounded up to a power of two, so that there are few shapes.
        """
        longest = int(self.lengths.max(initial=1))
        width = 1 << max(longest - 1, 0).bit_length()
        dense = np.empty((len(self.lengths), width, *self.values.shape[1:]), self.values.dtype)
        dense[...] = self.fill
        dense[np.arange(width) < self.lengths[:, None]] = self.values
        return dense


Column = np.ndarray | Ragged
Columns = Mapping[str, Column]


def spread(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns the indices of ranges, one range after another.

    Example:
        >>> spread(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    total = int(lengths.sum())
    return np.arange(total) + np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)


def rows_of(columns: Columns) -> int:
    """Returns the number of rows of a block."""
    return len(next(iter(columns.values())))


def take(columns: Columns, rows: np.ndarray) -> Columns:
    """Returns a copy of the rows with these numbers."""
    return {name: c.take(rows) if isinstance(c, Ragged) else c.take(rows, 0) for name, c in columns.items()}


def cut(columns: Columns, start: int, stop: int, step: int = 1) -> Columns:
    """Returns a range of rows. With step 1, arrays are not copied."""
    if step != 1:
        return take(columns, np.arange(start, min(stop, rows_of(columns)), step))
    piece = slice(start, stop)
    return {name: c.cut(piece) if isinstance(c, Ragged) else c[piece] for name, c in columns.items()}


def join(pieces: Sequence[Columns]) -> Columns:
    """Joins blocks of the same columns, one after another."""
    if len(pieces) == 1:
        return pieces[0]
    return {name: _joined([piece[name] for piece in pieces]) for name in pieces[0]}


def _joined(columns: Sequence[Column]) -> Column:
    first = columns[0]
    if not isinstance(first, Ragged):
        return np.concatenate(columns)  # pyright: ignore[reportArgumentType, reportCallIssue]
    parts = [column for column in columns if isinstance(column, Ragged)]
    return Ragged(
        values=np.concatenate([part.values for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        fill=first.fill,
    )
