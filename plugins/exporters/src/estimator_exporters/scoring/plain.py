"""Files whose rows hold arrays: JSON lines, CSV with JSON in its fields, and npz."""

from __future__ import annotations

import csv
import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.export import Feature
from estimator_exporters.bundle.loaded import casts, numpy_dtype, out_of_range

if TYPE_CHECKING:
    from estimator_exporters.scoring.read import Reading

#: Rows left out that are shown one by one, as in other readers.
_SHOWN = 5
_log = logging.getLogger("estimator_exporters")


def read_arrays(path: Path, reading: Reading) -> Iterator[dict[str, np.ndarray]]:
    """The arrays of an npz file, cut into batches; the file is held in memory.

    Raises:
        ArgumentError: arrays that are missing, or not equally long; names them.
    """
    wanted = [*reading.inputs, *reading.keep]
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in wanted if name in file}
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path} cannot be read: {error}.") from error
    missing = sorted(set(wanted) - found.keys())
    if missing:
        raise ArgumentError(f"{path} lacks {missing}; the signature takes {sorted(reading.inputs)}.")
    sizes = {name: len(array) for name, array in found.items()}
    if len(set(sizes.values())) != 1:
        raise ArgumentError(f"{path} must have the same number of rows for every input: {sizes}.")
    for start in range(0, next(iter(sizes.values())), reading.batch_size):
        yield {name: array[start : start + reading.batch_size] for name, array in found.items()}


def read_lines(path: Path, kind: str, reading: Reading) -> Iterator[dict[str, np.ndarray]]:
    """The rows of a file with JSON in it, line by line.

    Raises:
        ArgumentError: a row that does not fit, unless such rows are skipped; the message names file, line and column.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = _objects(file) if kind == ".jsonl" else _records(file)
            ready = _fitting(path, rows, reading)
            while some := list(itertools.islice(ready, reading.batch_size)):
                yield {name: _stacked([row[name] for row in some], reading.inputs.get(name)) for name in some[0]}
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} cannot be read: {error}.") from error


def _fitting(path: Path, rows: Iterator[tuple[int, Any]], reading: Reading) -> Iterator[dict[str, Any]]:
    skipped = 0
    for line, row in rows:
        try:
            yield _row(f"{path}, line {line}", row, reading)
        except ArgumentError as error:
            if not reading.skip_bad_rows:
                raise
            skipped += 1
            if skipped <= _SHOWN:
                _log.warning("Skipped %s", error)
    if skipped:
        _log.warning("Skipped %d rows of %s that cannot be read.", skipped, path)


def _objects(file: Any) -> Iterator[tuple[int, Any]]:
    for line, text in enumerate(file, start=1):
        if text.strip():
            try:
                yield line, json.loads(text)
            except (ValueError, RecursionError) as error:
                yield line, error


def _records(file: Any) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(file)
    for row in reader:
        yield reader.line_num, row


def _row(where: str, row: Any, reading: Reading) -> dict[str, Any]:
    if isinstance(row, Exception):
        raise ArgumentError(f"{where}: no JSON: {row}.") from row
    if not isinstance(row, dict):
        raise ArgumentError(f"{where}: it must be an object with {sorted(reading.inputs)}, given: {str(row)[:200]}.")
    found = {name: _value(where, name, row, feature, reading) for name, feature in reading.inputs.items()}
    return {name: str(row.get(name, "")) for name in reading.keep} | found


def _value(where: str, name: str, row: dict[str, Any], feature: Feature, reading: Reading) -> np.ndarray:
    value = row.get(name)
    if value is None or (value == "" and feature.dtype != "string"):
        if name not in reading.defaults:
            raise ArgumentError(f"{where}: column {name!r} has no value; a row must have {sorted(reading.inputs)}.")
        value = reading.defaults[name]
    shape = tuple(size or 1 for size in feature.shape[1:])
    try:
        if isinstance(value, str) and (feature.dtype != "string" or shape):
            value = json.loads(value)
        array = np.asarray(value, object if feature.dtype == "string" else None)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{where}: column {name!r} cannot be read as {feature.dtype}: {error}.") from error
    if array.shape != shape:
        raise ArgumentError(f"{where}: column {name!r} must have shape {shape}, given {array.shape}.")
    wanted = numpy_dtype(feature.dtype)
    excess = out_of_range(array, wanted)
    if excess is not None:
        raise ArgumentError(f"{where}: column {name!r} {excess}.")
    if not casts(array, wanted):
        raise ArgumentError(f"{where}: column {name!r} cannot be read as {feature.dtype}: {str(value)[:200]}.")
    return array.astype(wanted)


def _stacked(values: list[Any], feature: Feature | None) -> np.ndarray:
    if feature is None or (feature.dtype == "string" and len(feature.shape) == 1):
        return np.array([value if feature is None else value.item() for value in values], object)
    return np.stack(values)
