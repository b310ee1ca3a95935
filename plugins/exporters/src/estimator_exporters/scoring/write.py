"""Columns into a file, piece by piece; it gets its name when it is whole."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.storage import draft_of
from estimator_exporters.bundle.not_finite import named

SUFFIXES = (".csv", ".parquet", ".jsonl", ".npz")
#: Rows of a row group of a Parquet file.
_GROUP = 1 << 16


class Writer(Protocol):
    """Takes columns with the same names again and again."""

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Writes rows."""
        ...

    def close(self) -> None:
        """Writes what is left."""
        ...


def check_output(path: Path) -> None:
    """Refuses a file that could not be written, before there is anything to write.

    Raises:
        ArgumentError: another suffix, no such directory, or one that this user may not write.
    """
    if path.suffix not in SUFFIXES:
        raise ArgumentError(f"{path} must end in {', '.join(SUFFIXES)}.")
    if not path.parent.is_dir():
        raise ArgumentError(f"{path} cannot be written: there is no directory '{path.parent}'. Make it first.")
    if path.is_dir():
        raise ArgumentError(f"{path} cannot be written: it is a directory. Name a file.")
    if not os.access(path.parent, os.W_OK):
        raise ArgumentError(f"{path} cannot be written: this user may not write to '{path.parent}'. Name another file.")


@contextlib.contextmanager
def writing(path: Path) -> Generator[Writer]:
    """A writer by the suffix of a path. The file has another name until the block is left without an error.

    Raises:
        ArgumentError: as `check_output`.
    """
    check_output(path)
    with draft_of(path) as draft:
        writer = _WRITERS[path.suffix](draft)
        try:
            yield writer
        finally:
            writer.close()


class _Arrow:
    """CSV and Parquet, by pyarrow."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None
        self._waiting: list[Any] = []

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Keeps rows until they make a row group."""
        import pyarrow as pa

        flat = self._path.suffix == ".csv"
        table = pa.table({name: _arrow(array, flat=flat) for name, array in columns.items()})
        self._waiting.append(table)
        if sum(one.num_rows for one in self._waiting) >= _GROUP:
            self._flush()

    def close(self) -> None:
        """Writes the last rows and the end of the file."""
        if self._waiting:
            self._flush()
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa
        from pyarrow import csv, parquet

        table = pa.concat_tables(self._waiting)
        self._waiting = []
        if self._writer is None:
            kind = csv.CSVWriter if self._path.suffix == ".csv" else parquet.ParquetWriter
            self._writer = kind(str(self._path), table.schema)
        self._writer.write_table(table)


class _JsonLines:
    """An object a row."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Writes rows."""
        names, values = list(columns), [_plain(array) for array in columns.values()]
        rows: Iterator[tuple[Any, ...]] = zip(*values, strict=True)
        self._file.writelines(_line(dict(zip(names, row, strict=True))) for row in rows)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class _Arrays:
    """npz: arrays by name; they are held in memory until the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parts: list[Mapping[str, np.ndarray]] = []

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Keeps rows."""
        self._parts.append(columns)

    def close(self) -> None:
        """Writes all."""
        if not self._parts:
            return
        joined = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        np.savez(self._path, **{name: _storable(array) for name, array in joined.items()})  # pyright: ignore[reportArgumentType]


_WRITERS = {".csv": _Arrow, ".parquet": _Arrow, ".jsonl": _JsonLines, ".npz": _Arrays}


def _line(row: dict[str, Any]) -> str:
    """Strict JSON: readers of tables refuse `NaN`."""
    try:
        return json.dumps(row, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(named(row)) + "\n"


def _arrow(array: np.ndarray, *, flat: bool) -> Any:
    """A column of Arrow; vectors are lists, and JSON where there are none."""
    import pyarrow as pa

    if array.ndim > 1 or array.dtype == object or array.dtype.kind == "V":
        values = _plain(array)
        return pa.array([json.dumps(value) for value in values] if flat and array.ndim > 1 else values)
    return pa.array(array)


def _storable(array: np.ndarray) -> np.ndarray:
    """An array of a dtype that numpy reads back: it would read bfloat16 as bytes without a meaning."""
    if array.dtype.kind == "V":
        return array.astype(np.float32)
    return np.array(_plain(array)) if array.dtype == object else array


def _plain(array: np.ndarray) -> list[Any]:
    """Values that JSON has: bytes are text, and bfloat16 numbers."""
    if array.dtype.kind == "V":
        return array.astype(np.float32).tolist()
    if array.dtype != object:
        return array.tolist()
    return [_text(value) for value in array.tolist()]


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
