"""Converts Arrow tables to blocks of rows. Rows without a required value or with an unknown token are bad."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from estimator_inputs.reading.blocks import BadRow, Block
from estimator_inputs.reading.ragged import Column, take
from estimator_inputs.table.arrays import to_column
from estimator_inputs.table.casts import castable, shown
from estimator_inputs.table.rounding import infinite_rows, rounded_rows
from estimator_inputs.table.types import ColumnType

_CURE = "column_types: an integer, 'string' to hash it, or a float to round it"


class Tables(NamedTuple):
    """The rows of a piece of a file as Arrow tables, including nulls, and the bad rows.

    Attributes:
        found: the tables, each with a function that names the place of a row.
        bad: the bad rows, in any order.
    """

    found: Sequence[tuple[Any, Callable[[int], str]]]
    bad: Sequence[BadRow] = ()


def block_of(table: Any, types: Mapping[str, ColumnType], where: Callable[[int], str], *, first: int = 0) -> Block:
    """Returns the rows of a table as a block.

    Args:
        table: a table with the columns of `types`.
        types: the types of the columns.
        where: returns the file, and the line or record, of a row.
        first: the number of the first row in the file.
    """
    import pyarrow as pa

    columns: dict[str, Column] = {}
    faults: dict[int, object] = {}
    for name, kind in types.items():
        array = table.column(name)
        try:
            columns[name], missing = to_column(array, kind)
        except pa.ArrowInvalid:
            array, wrong = castable(array, kind)
            columns[name], missing = to_column(array, kind)
            for row, value in wrong.items():
                faults.setdefault(row, f"column {name!r}: {shown(value)} is not of type {kind.name}")
        if missing is not None:
            for row in np.flatnonzero(missing).tolist():
                faults.setdefault(row, f"column {name!r}: no value, and no default (column_defaults)")
        if kind.exact:
            for row, number in rounded_rows(array, kind.dtype):
                faults.setdefault(row, f"column {name!r}: {kind.dtype} cannot represent {number} exactly ({_CURE})")
        for row, number in infinite_rows(array, columns[name]):
            faults.setdefault(row, f"column {name!r}: {shown(number)} is infinite as {kind.dtype}")
        if kind.vocabulary is not None:
            for row, unknown in kind.vocabulary.unknown(columns[name], f"column {name!r}: "):
                faults.setdefault(row, unknown)
    rows = table.num_rows
    if not faults:
        return Block(columns=columns, rows=rows, first=first, where=where)
    good = np.ones(rows, bool)
    good[list(faults)] = False
    bad = [BadRow(where(row), faults[row]) for row in sorted(faults)]
    kept = np.flatnonzero(good)
    numbers = kept.tolist()
    good_columns = take(columns, kept)
    return Block(columns=good_columns, rows=len(numbers), bad=bad, first=first, where=lambda row: where(numbers[row]))
