"""Writes columns to a file in pieces. The file has its name only after it is complete."""

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
from estimator_exporters.bundle.object_arrays import decoded

SUFFIXES = (".csv", ".parquet", ".jsonl", ".npz")
#: The number of rows in a row group of a Parquet file.
_GROUP = 1 << 16


class Writer(Protocol):
    """Writes columns. Every call has the same column names."""

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Writes rows."""
        ...

    def close(self) -> None:
        """Writes the remaining rows."""
        ...


def check_output(path: Path) -> None:
    """Refuses an output path that cannot be written, before the scoring starts.

    Raises:
        ArgumentError: the suffix is unsupported, the directory does not exist, or this user may not write to it.
    """
    if path.suffix not in SUFFIXES:
        raise ArgumentError(f"{path} must end in {', '.join(SUFFIXES)}.")
    if not path.parent.is_dir():
        raise ArgumentError(f"{path} cannot be written: there is no directory '{path.parent}'. Create it first.")
    if path.is_dir():
        raise ArgumentError(f"{path} cannot be written: it is a directory. Name a file.")
    if not os.access(path.parent, os.W_OK):
        raise ArgumentError(f"{path} cannot be written: this user may not write to '{path.parent}'. Name another file.")


@contextlib.contextmanager
def writing(path: Path) -> Generator[Writer]:
    """Yields the writer for the suffix of a path. The file has a temporary name until the block ends without an error.

    Raises:
        ArgumentError: the same conditions as in `check_output`.
    """
    check_output(path)
    with draft_of(path) as draft:
        writer = _WRITERS[path.suffix](draft)
        try:
            yield writer
        finally:
            writer.close()


class _Arrow:
    """Writes CSV and Parquet with pyarrow."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None
        self._waiting: list[Any] = []

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Collects rows until they fill a row group."""
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
    """Writes one JSON object per row."""

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
    """Writes npz: arrays by name. They are held in memory until the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parts: list[Mapping[str, np.ndarray]] = []

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Collects rows."""
        self._parts.append(columns)

    def close(self) -> None:
        """Writes all arrays."""
        if not self._parts:
            return
        joined = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        np.savez(self._path, **{name: _storable(array) for name, array in joined.items()})  # pyright: ignore[reportArgumentType]


_WRITERS = {".csv": _Arrow, ".parquet": _Arrow, ".jsonl": _JsonLines, ".npz": _Arrays}


def _line(row: dict[str, Any]) -> str:
    """Returns a line of strict JSON, because readers of tables refuse `NaN`."""
    try:
        return json.dumps(row, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(named(row)) + "\n"


def _arrow(array: np.ndarray, *, flat: bool) -> Any:
    """Returns an Arrow column. Vectors become lists, or JSON if the file is CSV."""
    import pyarrow as pa

    if array.ndim > 1 or array.dtype == object or array.dtype.kind == "V":
        values = _plain(array)
        return pa.array([json.dumps(value) for value in values] if flat and array.ndim > 1 else values)
    return pa.array(array)


def _storable(array: np.ndarray) -> np.ndarray:
    """Returns an array of a dtype that numpy reads back. numpy would read bfloat16 as raw bytes."""
    if array.dtype.kind == "V":
        return array.astype(np.float32)
    return np.array(_plain(array)) if array.dtype == object else array


def _plain(array: np.ndarray) -> list[Any]:
    """Returns values that JSON can represent: bytes become text, and bfloat16 becomes numbers."""
    if array.dtype.kind == "V":
        return array.astype(np.float32).tolist()
    if array.dtype != object:
        return array.tolist()
    return [decoded(value) for value in array.tolist()]
