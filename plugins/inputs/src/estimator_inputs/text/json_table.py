"""Reads JSON lines as Arrow tables, and finds the faults of bad lines."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from estimator_inputs.table.rounding import becomes_infinite, items_of
from estimator_inputs.table.types import READ_AS_REAL, STRING, ColumnType, arrow_type

_SHOWN = 60
#: The texts of numbers that JSON lacks. protobuf, the server of exports and `estimator predict` write these texts.
_SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def json_table(data: bytes, types: Mapping[str, ColumnType]) -> Any:
    """Returns the columns in `types` of lines of JSON objects. Other keys are skipped.

    Raises:
        pyarrow.ArrowInvalid: a line is not a JSON object, a value has the wrong type, or a finite number becomes
            infinite.
    """
    import pyarrow as pa

    if not data.isascii():  # Arrow does not check the encoding
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise pa.ArrowInvalid(f"not valid UTF-8: {error}") from error
    real = [name for name, kind in types.items() if kind.dtype.kind == "f"]
    try:
        table = _read(data, types)
    except pa.ArrowInvalid:
        changed = _with_numbers(data, real)
        if changed == data:
            raise
        table, data = _read(changed, types), changed
    lines: list[bytes] = []
    for name in real:
        rows = _infinite_rows(table.column(name))
        if rows:
            lines = lines or [line for line in data.split(b"\n") if line.strip()]
            if len(lines) != table.num_rows:
                raise pa.ArrowInvalid("a line holds several objects")
            if any(_infinite(_value(lines[row], name), types[name]) for row in rows):
                raise pa.ArrowInvalid(f"{name}: a finite number becomes infinite")
    return table


def _read(data: bytes, types: Mapping[str, ColumnType]) -> Any:
    import pyarrow as pa
    from pyarrow import json as arrow_json

    schema = pa.schema([pa.field(name, arrow_type(kind)) for name, kind in types.items()])
    try:
        return arrow_json.read_json(
            pa.BufferReader(data),
            arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            arrow_json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="ignore"
            ),
        )
    except UnicodeDecodeError as error:  # an error message of Arrow that cuts a character in two
        raise pa.ArrowInvalid("not JSON") from error


def as_numbers(values: Sequence[Any]) -> Sequence[Any]:
    """Returns values, or lists of values, in which texts such as "NaN" become numbers if all other values are numbers.

    Example:
        >>> as_numbers([1, "NaN"]), as_numbers([[0.5], ["-Infinity"]]), as_numbers(["a", "NaN"])
        ([1, nan], [[0.5], [-inf]], ['a', 'NaN'])
    """
    items = [item for value in values for item in items_of(value) if item is not None]
    kinds = {float if isinstance(item, str) and item in _SPELLED else type(item) for item in items}
    numbers = kinds <= {int, float} and not all(isinstance(item, str) for item in items)
    return [_unspelled(value) for value in values] if numbers else values


def of_one_type(values: Sequence[Any]) -> Sequence[Any]:
    """Returns the values of the most frequent type of JSON. Of equally frequent types, the first one counts.

    Example:
        >>> of_one_type([1, "a", None, 2.5]), of_one_type([["a"], "b", ["c", None], []])
        ([1, 2.5], [['a'], ['c', None]])
    """
    kinds = [_json_type(value) for value in values]
    known = Counter(kind for kind in kinds if kind is not None)
    most = max(known, key=known.__getitem__, default=None)
    return [value for value, kind in zip(values, kinds, strict=True) if kind == most] or values


def _json_type(value: Any) -> str | None:
    """Returns the name of a type of JSON, or None if no value shows it."""
    if isinstance(value, list):
        items: list[Any] = value
        inner = sorted({kind for item in items if (kind := _json_type(item)) is not None})
        return f"list of {' and '.join(inner)}" if inner else None
    if value is None:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "number" if number or (isinstance(value, str) and value in _SPELLED) else type(value).__name__


def _unspelled(value: Any) -> Any:
    if isinstance(value, list):
        items: list[Any] = value
        return [_unspelled(item) for item in items]
    return _SPELLED.get(value, value) if isinstance(value, str) else value


def _with_numbers(data: bytes, names: Sequence[str]) -> bytes:
    """Returns lines in which literals of Arrow replace texts such as "NaN" under these names. Line ends do not move."""
    if not names or not _spells(data):
        return data
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if not _spells(line):
            continue
        try:
            row = _loaded(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            values: dict[str, Any] = row
            changed = values | {name: _unspelled(values[name]) for name in names if name in values}
            lines[number] = line if changed == values else json.dumps(changed).encode()
    return b"\n".join(lines)


def _loaded(line: bytes) -> Any:
    return json.loads(line, parse_float=_finite, object_pairs_hook=_each_once)


class _RepeatedKeyError(ValueError):
    """A JSON object has two values under one key."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _RepeatedKeyError(f"the key {key!r} occurs twice")
        found[key] = value
    return found


def _finite(text: str) -> float:
    """Returns a number as Arrow reads it. Arrow refuses numbers that `json` would make infinite."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:_SHOWN]} is infinite as float64")
    return number


def _spells(data: bytes) -> bool:
    return b'"NaN"' in data or b'Infinity"' in data


def _infinite_rows(column: Any) -> list[int]:
    """Returns the rows with an infinite number."""
    import pyarrow as pa
    import pyarrow.compute as compute

    pc = cast(Any, compute)
    listed = pa.types.is_list(column.type)
    items = pc.list_flatten(column) if listed else column
    if not len(items):  # indices_nonzero ends the process if there is no chunk
        return []
    places = pc.indices_nonzero(pc.is_inf(items).fill_null(False))
    if not listed:
        return places.to_pylist()
    return pc.list_parent_indices(column).take(places).unique().to_pylist() if len(places) else []


def _value(line: bytes, name: str) -> Any:
    """Returns a value of a line, or None if only Arrow can parse the line, because Arrow also reads `Inf`."""
    try:
        return json.loads(line).get(name)
    except ValueError:
        return None


def _infinite(value: Any, kind: ColumnType) -> bool:
    """Returns whether a finite number, or one in a list, becomes infinite as a float of this type."""
    return kind.dtype.kind == "f" and any(becomes_infinite(item, kind.dtype) for item in items_of(value))


def is_object(line: bytes) -> bool:
    r"""Returns whether a line is a JSON object whose texts are characters.

    Example:
        >>> is_object(b'{"a": 1}'), is_object(b"[1]"), is_object(b'{"a": '), is_object(b'{"a": "\\ud83d"}')
        (True, False, False, False)
    """
    try:
        row = json.loads(line)
        if b"\\u" in line:  # half a surrogate pair, which Arrow refuses
            json.dumps(row, ensure_ascii=False).encode()
        return isinstance(row, dict)
    except ValueError:
        return False


def other_form(head: bytes) -> str | None:
    r"""Describes a text that is not JSON lines, and what to do. Returns None if a line is an object.

    Example:
        >>> other_form(b'{"a": 1}\n'), other_form(b"a,b\n1,2\n")
        (None, 'it does not hold JSON lines: line 1 is \'a,b\'. Write one JSON object a line, such as {"x": 1}.')
    """
    lines = [(number, line.strip()) for number, line in enumerate(head.split(b"\n"), 1) if line.strip()]
    number, first = lines[0]
    if first.startswith(b"[") and (first[1:].lstrip().startswith(b"{") or (first == b"[" and len(lines) > 1)):
        return "it holds a JSON array, not JSON lines. Write one object a line: jq -c '.[]' FILE > rows.jsonl"
    if any(is_object(line) for _, line in lines):
        return None
    if first.startswith(b"{"):
        if first.endswith(b"},") and is_object(first[:-1]):
            return "it has commas between JSON objects. Remove the comma at the end of each line."
        if len(lines) > 1:
            return "each of its JSON objects has several lines. Write one object a line: jq -c . FILE > rows.jsonl"
    shown = first[:_SHOWN].decode("utf-8", errors="replace")
    return f'it does not hold JSON lines: line {number} is {shown!r}. Write one JSON object a line, such as {{"x": 1}}.'


def json_what_can_be(
    data: bytes, types: Mapping[str, ColumnType], *, first_only: bool
) -> tuple[list[tuple[Any, list[int]]], list[tuple[int, str]]]:
    """Returns the good lines of `data`, and the bad ones. See `read_what_can_be` of CSV.

    Returns:
        The tables with the numbers of their lines, from 0, and the bad lines with their faults.
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
        row: Any = _loaded(line)
    except _RepeatedKeyError as repeated:
        return str(repeated)
    except ValueError as broken:
        return f"not JSON: {broken}"
    if not isinstance(row, dict):
        return f"not a JSON object: {text[:_SHOWN]!r}"
    values: dict[str, Any] = row
    for name, kind in types.items():
        if name in values and any(isinstance(item, dict) for item in items_of(values[name])):
            return (
                f"column {name!r}: a JSON object cannot be a feature. Leave the column out (select_columns), or write "
                "a column for each of its values"
            )
        if name in values and not _fits(values[name], kind):
            cure = READ_AS_REAL if kind.dtype.kind in "iu" and isinstance(values[name], float) else ""
            return f"column {name!r}: {str(values[name])[:_SHOWN]!r} is not of type {kind.name}{cure}"
        if _infinite(values.get(name), kind):
            return f"column {name!r}: {str(values[name])[:_SHOWN]!r} is infinite as {kind.dtype}"
    return str(error)


def _fits(value: Any, kind: ColumnType) -> bool:
    if value is None:
        return True
    if kind.listed:
        items: list[Any] = value
        return isinstance(value, list) and all(_fits(item, ColumnType(dtype=kind.dtype)) for item in items)
    if kind.dtype == STRING:
        return isinstance(value, str)
    value = _unspelled(value) if kind.dtype.kind == "f" else value
    if kind.dtype.kind == "b":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if kind.dtype.kind == "f":
        return True
    limits = np.iinfo(kind.dtype)
    return isinstance(value, int) and limits.min <= value <= limits.max
