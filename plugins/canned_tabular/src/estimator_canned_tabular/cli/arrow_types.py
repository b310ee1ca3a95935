"""Parquet files, and their columns that hold neither a number nor a word in a row."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

from estimator_core.errors import InputError
from estimator_inputs import parquet_input_fn

_MAGIC = b"PAR1"


def is_parquet(path: Path) -> bool:
    """Returns whether a file is called .parquet or begins as Parquet files do. A pattern is judged by its first file.

    Example:
        >>> is_parquet(Path("rows.parquet")), is_parquet(Path("rows.csv"))
        (True, False)
    """
    if path.suffix.lower() == ".parquet":
        return True
    names = [str(path)] if path.is_file() else sorted(glob.glob(str(path), recursive=True))[:1]
    try:
        return any(_begins(Path(name)) == _MAGIC for name in names if Path(name).is_file())
    except OSError:
        return False  # the reader reports why it cannot be read


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_MAGIC))


def nested_columns(path: Path) -> dict[str, str]:
    """Returns, by column of Parquet, what it holds instead of one value in a row. Of a pattern, the first file counts.

    Raises:
        ArgumentError, InputError: the file cannot be read.
    """
    import pyarrow as pa

    types = pa.types
    found: dict[str, str] = {}
    for field in _fields(path):
        kind = field.type
        if types.is_map(kind):
            found[field.name] = "maps"
        elif types.is_struct(kind) or types.is_union(kind):
            found[field.name] = "records"
        elif types.is_nested(kind):
            found[field.name] = "lists"
        elif types.is_duration(kind):
            found[field.name] = "time spans"
    return found


def binary_columns(path: Path) -> frozenset[str]:
    """Returns the columns of Parquet that are bytes, which may be text.

    Raises:
        ArgumentError, InputError: the file cannot be read.
    """
    import pyarrow as pa

    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return frozenset(field.name for field in _fields(path) if any(of(field.type) for of in kinds))


def check_no_later_columns(path: Path) -> None:
    """Refuses a later Parquet file with a column that the first one lacks.

    Raises:
        InputError: there is such a column, or a file cannot be read.
    """
    first, *others = parquet_input_fn(path, 1, shuffle=False).files
    known = {field.name for field in _fields_of(first)}
    for other in others:
        for field in _fields_of(other):
            if field.name not in known:
                raise InputError(f"{other}: column {field.name!r} is not in {first}. Remove the column.")


def _fields(path: Path) -> list[Any]:
    return _fields_of(parquet_input_fn(path, 1, shuffle=False).files[0]) if is_parquet(path) else []


def _fields_of(file: Path) -> list[Any]:
    from pyarrow import parquet

    try:
        return list(parquet.read_schema(file))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error}.") from error
