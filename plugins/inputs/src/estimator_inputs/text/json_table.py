"""JSON lines as Arrow tables, and the faults of bad lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_inputs.table.types import STRING, ColumnType, arrow_type

_SHOWN = 60


def json_table(data: bytes, types: Mapping[str, ColumnType]) -> Any:
    """The columns `types` of lines of JSON objects; other keys are skipped.

    Raises:
        pyarrow.ArrowInvalid: a line that is not a JSON object, or a value of the wrong type.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if not data.isascii():  # Arrow does not check it
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise pa.ArrowInvalid(f"not valid UTF-8: {error}") from error
    schema = pa.schema([pa.field(name, arrow_type(kind)) for name, kind in types.items()])
    try:
        return arrow_json.read_json(
            pa.BufferReader(data),
            arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            arrow_json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="ignore"
            ),
        )
    except UnicodeDecodeError as error:  # an error message that cuts a character in two
        raise pa.ArrowInvalid("no JSON") from error


def is_object(line: bytes) -> bool:
    """Whether a line is a JSON object.

    Example:
        >>> is_object(b'{"a": 1}'), is_object(b"[1]"), is_object(b'{"a": ')
        (True, False, False)
    """
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def json_what_can_be(
    data: bytes, types: Mapping[str, ColumnType], *, first_only: bool
) -> tuple[list[tuple[Any, list[int]]], list[tuple[int, str]]]:
    """The good lines of `data`, and the bad ones; see `read_what_can_be` of CSV.

    Returns:
        Tables with the numbers of their lines, from 0; and bad lines with their faults.
    """
    import pyarrow as pa

    lines = data.split(b"\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    tables: list[tuple[Any, list[int]]] = []
    faulty: list[tuple[int, str]] = []
    waiting = [(0, len(filled))]
    while waiting:
        first, last = waiting.pop()
        if first == last:
            continue
        numbers = filled[first:last]
        try:
            tables.append((json_table(b"\n".join(lines[n] for n in numbers) + b"\n", types), numbers))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            if last - first > 1:
                middle = (first + last) // 2
                waiting += [(middle, last), (first, middle)]
                continue
            faulty.append((numbers[0], _fault_of(lines[numbers[0]], types, error)))
            if first_only:
                break
    return tables, faulty


def _fault_of(line: bytes, types: Mapping[str, ColumnType], error: Exception) -> str:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return f"not valid UTF-8: {line[:_SHOWN]!r}"
    try:
        row: Any = json.loads(text)
    except ValueError as broken:
        return f"no JSON: {broken}"
    if not isinstance(row, dict):
        return f"no JSON object: {text[:_SHOWN]!r}"
    values: dict[str, Any] = row
    for name, kind in types.items():
        if name in values and not _fits(values[name], kind):
            return f"column {name!r}: {str(values[name])[:_SHOWN]!r} is not of type {kind.name}"
    return str(error)


def _fits(value: Any, kind: ColumnType) -> bool:
    if value is None:
        return True
    if kind.listed:
        items: list[Any] = value
        return isinstance(value, list) and all(_fits(item, ColumnType(dtype=kind.dtype)) for item in items)
    if kind.dtype == STRING:
        return isinstance(value, str)
    if kind.dtype.kind == "b":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if kind.dtype.kind == "f":
        return True
    limits = np.iinfo(kind.dtype)
    return isinstance(value, int) and limits.min <= value <= limits.max
