"""Arrow tables as blocks of rows; rows without a value that they need are bad."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from estimator_inputs.reading.blocks import BadRow, Block
from estimator_inputs.reading.ragged import Column, take
from estimator_inputs.table.arrays import to_column
from estimator_inputs.table.types import ColumnType


def block_of(table: Any, types: Mapping[str, ColumnType], where: Callable[[int], str]) -> Block:
    """The rows of a table.

    Args:
        table: with the columns of `types`.
        types: what they become.
        where: tells file and line or record of a row.
    """
    columns: dict[str, Column] = {}
    lacking: dict[int, str] = {}
    for name, kind in types.items():
        columns[name], missing = to_column(table.column(name), kind)
        if missing is not None:
            for row in np.flatnonzero(missing).tolist():
                lacking.setdefault(row, name)
    rows = table.num_rows
    if not lacking:
        return Block(columns=columns, rows=rows)
    good = np.ones(rows, bool)
    good[list(lacking)] = False
    bad = [
        BadRow(where(row), f"column {name!r}: no value, and no default (column_defaults)")
        for row, name in sorted(lacking.items())
    ]
    kept = np.flatnonzero(good)
    return Block(columns=take(columns, kept), rows=len(kept), bad=bad)
