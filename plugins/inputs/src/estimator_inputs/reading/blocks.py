"""The contract of a kind of file: it divides files into pieces and decodes pieces into blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from estimator_inputs.reading.ragged import Columns

#: The place where a piece begins: JSON values that the kind of file understands. None is the beginning of the file.
Place = Any


class BadRow(NamedTuple):
    """A row that cannot be used.

    Attributes:
        where: the file, and the line or record.
        what: the column and the fault, as an object whose `str` is the text.
    """

    where: str
    what: object

    @property
    def number(self) -> int:
        """The number of the line or record, which is the last word of `where`."""
        return int(self.where.rsplit(" ", 1)[1])

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Piece(NamedTuple):
    """A part of a file that can be decoded on its own.

    Attributes:
        path: the path of the file.
        content: the data that the kind of file needs to decode it.
        after: the place where the next piece begins.
    """

    path: Path
    content: Any
    after: Place


@dataclass(frozen=True, kw_only=True)
class Block:
    """The decoded rows of a piece.

    Attributes:
        columns: the columns of the good rows.
        rows: the number of good rows.
        bad: the bad rows, in the order of the file.
        first: the number of the first row in the file, from 0. It is set only if rows are held out.
        where: returns the file, and the line or record, of a good row. None: they are unknown.
    """

    columns: Columns
    rows: int
    bad: Sequence[BadRow] = ()
    first: int = 0
    where: Callable[[int], str] | None = None


class FileKind(Protocol):
    """Reads one kind of file. `pieces` runs in the thread that draws batches, and `decode` runs in other threads."""

    @property
    def name(self) -> str:
        """The name of the kind, such as "csv"."""
        ...

    @property
    def summary(self) -> str:
        """The columns with types and shapes, for the fingerprint of a position."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns to read, including the label."""
        ...

    @property
    def varying_shapes(self) -> bool:
        """Whether sizes other than the batch change from batch to batch."""
        ...

    def pieces(self, path: Path, place: Place) -> Iterator[Piece]:
        """Yields the pieces of a file from a place on. The content between two places is always the same."""
        ...

    def decode(self, piece: Piece, *, all_bad_rows: bool) -> Block:
        """Decodes the rows of a piece.

        Args:
            piece: the piece.
            all_bad_rows: whether to find all bad rows. False: the first one is enough, because it raises an error.
        """
        ...

    def batch(self, columns: Columns) -> Any:
        """Returns the columns of a batch as `(features, labels)`, or as features."""
        ...


def joined(blocks: Sequence[Block]) -> Callable[[int], str] | None:
    """Returns a function that names the place of a row of joined blocks, or None if a block has no such function."""
    kept = [block for block in blocks if block.rows]
    ends = np.cumsum([block.rows for block in kept])

    def where(row: int) -> str:
        number = int(np.searchsorted(ends, row, side="right"))
        told = kept[number].where
        assert told is not None
        return told(row - int(ends[number]) + kept[number].rows)

    return None if any(block.where is None for block in kept) else where


def split_labels(columns: Columns, label_name: str | None) -> Any:
    """Returns dense features by name, and the labels if there are any."""
    dense = {name: c if isinstance(c, np.ndarray) else c.dense() for name, c in columns.items()}
    if label_name is None:
        return dense
    labels = dense.pop(label_name)
    return dense, labels
