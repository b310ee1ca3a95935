"""Finds the values of an Arrow array that cannot be cast to a type."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimator_inputs.table.arrays import to_column
from estimator_inputs.table.types import ColumnType

_SHOWN = 100


def castable(array: Any, kind: ColumnType) -> tuple[Any, dict[int, object]]:
    """Returns an array in which values that cannot be cast are missing, and these values by row.

    Args:
        array: an array or chunked array.
        kind: the target type.

    Example:
        >>> import pyarrow as pa
        >>> array, wrong = castable(pa.array(["1", "n/a"]), ColumnType(dtype=np.dtype(np.int32)))
        >>> (array.to_pylist(), wrong)
        (['1', None], {1: 'n/a'})
    """
    import pyarrow as pa

    wrong = _wrong(array, kind, range(len(array)))
    gone = np.zeros(len(array), bool)
    gone[wrong] = True
    kept = array.take(pa.array(np.arange(len(array)), mask=gone))
    return kept, {row: array[row].as_py() for row in wrong}


def shown(value: object) -> str:
    """Returns a value for a message. A long value is cut."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _wrong(array: Any, kind: ColumnType, rows: range) -> list[int]:
    """Returns the rows that cannot be cast. They are found by bisection, because most rows can be cast."""
    if not rows or _holds(array, kind, rows):
        return []
    if len(rows) == 1:
        return [rows[0]]
    middle = len(rows) // 2
    return _wrong(array, kind, rows[:middle]) + _wrong(array, kind, rows[middle:])


def _holds(array: Any, kind: ColumnType, rows: range) -> bool:
    import pyarrow as pa

    try:
        to_column(array.take(pa.array(rows)), kind)  # a cast of a slice would cast the items of all lists
    except pa.ArrowInvalid:
        return False
    return True
