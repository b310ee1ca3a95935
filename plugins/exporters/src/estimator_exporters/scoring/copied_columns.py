"""Columns that are copied from the input to the output. They are texts unless the signature takes them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_exporters.bundle.object_arrays import objects
from estimator_exporters.scoring.array_files import types_of_lines

#: The value that stands for a missing number in a row of JSON.
_NOTHING = {"int64": int(np.iinfo(np.int64).min), "float64": math.nan}


def types_to_keep(path: Path, kind: str, names: Sequence[str]) -> dict[str, str] | None:
    """Returns the type by which each column is read.

    None: values in JSON have mixed types, and rows are read one by one.
    """
    if kind != ".jsonl" or not names:
        return dict.fromkeys(names, "string")
    return types_of_lines(path, names)


def values_for_none(types: Mapping[str, str]) -> dict[str, Any]:
    """Returns the value for empty fields, by name, for each column of numbers."""
    return {name: _NOTHING[kind] for name, kind in types.items() if kind in _NOTHING}


def number_lists(path: Path, kind: str, names: Sequence[str]) -> set[str]:
    """Returns the columns of a Parquet file that contain lists of numbers."""
    if kind != ".parquet" or not names:
        return set()
    from pyarrow import parquet, types

    schema = parquet.read_schema(str(path))
    items = {name: getattr(schema.field(name).type, "value_type", None) for name in names}
    return {name for name, item in items.items() if item is not None and types.is_primitive(item) and _number(item)}


def as_text(column: Any, *, numbers: bool) -> np.ndarray:
    """Returns a column as texts. Numbers and truth values have the form of JSON, and a list is a JSON list.

    Args:
        column: an array, or lists of different lengths.
        numbers: whether the lists contain numbers as texts, which are written without quotes.
    """
    if not isinstance(column, np.ndarray):
        ends = np.cumsum(column.lengths)[:-1]
        return objects([_list(part.tolist(), numbers) for part in np.split(column.values, ends)])
    if column.ndim > 1:
        return objects([_list(row, numbers) for row in column.tolist()])
    if column.dtype == object:
        return column
    nothing = _NOTHING.get(str(column.dtype))
    empty = np.isnan(column) if column.dtype.kind == "f" else column == nothing
    return objects(["" if none else json.dumps(value) for value, none in zip(column.tolist(), empty, strict=True)])


def _list(items: Sequence[Any], numbers: bool) -> str:
    write: Callable[[str], str] = _bare if numbers else json.dumps
    return f"[{', '.join(write(one.decode() if isinstance(one, bytes) else str(one)) for one in items)}]"


def _bare(text: str) -> str:
    return _NOT_FINITE.get(text, text)


#: The JSON form of numbers that Arrow writes differently.
_NOT_FINITE = {"": "null", "nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def _number(item: Any) -> bool:
    from pyarrow import types

    return types.is_integer(item) or types.is_floating(item) or types.is_boolean(item) or types.is_decimal(item)
