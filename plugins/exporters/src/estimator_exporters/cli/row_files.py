"""Rows in files: npz, jsonl and csv."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.export import Feature
from estimator_exporters.bundle.loaded import numpy_dtype

SUFFIXES = (".npz", ".jsonl", ".csv")


def read_rows(path: Path, inputs: Mapping[str, Feature]) -> dict[str, np.ndarray]:
    """The inputs of a signature from a file; columns it does not take are left out.

    Raises:
        ArgumentError: no such file, another suffix, or rows that do not fit; names the row.
    """
    _check_suffix(path)
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as file:
                columns: dict[str, Any] = {name: file[name] for name in inputs if name in file}
        elif path.suffix == ".jsonl":
            columns = _columns(path, _json_lines(path), inputs)
        else:
            with path.open(newline="", encoding="utf-8") as file:
                columns = _columns(path, list(csv.DictReader(file)), inputs)
    except ArgumentError:
        raise
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path} cannot be read: {error}.") from error
    missing = sorted(inputs.keys() - columns.keys())
    if missing:
        raise ArgumentError(f"{path} lacks {missing}; the signature takes {sorted(inputs)}.")
    arrays = {name: _array(path, name, columns[name], feature) for name, feature in inputs.items()}
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) != 1 or 0 in sizes.values():
        raise ArgumentError(f"{path} must have the same number of rows, at least one, for every input: {sizes}.")
    return arrays


def write_rows(path: Path, batches: Sequence[Mapping[str, np.ndarray]], count: int) -> None:
    """Writes outputs, those with a row for each input row."""
    columns = {name: np.concatenate([np.atleast_1d(batch[name]) for batch in batches]) for name in batches[0]}
    columns = {name: column for name, column in columns.items() if len(column) == count}
    if path.suffix == ".npz":
        plain = {name: column.astype(str) if column.dtype == object else column for name, column in columns.items()}
        np.savez(path, **plain)  # pyright: ignore[reportArgumentType]
        return
    rows = [{name: _value(column[row]) for name, column in columns.items()} for row in range(count)]
    with path.open("w", newline="", encoding="utf-8") as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps(row) + "\n" for row in rows)
            return
        writer = csv.DictWriter(file, fieldnames=list(columns))
        writer.writeheader()
        writer.writerows({name: json.dumps(v) if isinstance(v, list) else v for name, v in row.items()} for row in rows)


def check_output(path: Path) -> None:
    """Refuses a file that could not be written, before there is anything to write.

    Raises:
        ArgumentError: another suffix, or no such directory.
    """
    _check_suffix(path)
    if not path.parent.is_dir() or path.is_dir():
        raise ArgumentError(f"{path} cannot be written: {path.parent} must be a directory, and {path.name} a file.")


def _check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise ArgumentError(f"{path} must end in {', '.join(SUFFIXES)}.")


def _json_lines(path: Path) -> list[Any]:
    rows: list[Any] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ArgumentError(f"{path}, line {number}: no JSON: {error}.") from error
    return rows


def _columns(path: Path, rows: Sequence[Any], inputs: Mapping[str, Feature]) -> dict[str, list[Any]]:
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or any(row.get(name) is None for name in inputs):
            raise ArgumentError(f"{path}, row {number}: it must have {sorted(inputs)}, given: {str(row)[:200]}.")
    if not rows:
        raise ArgumentError(f"{path} has no rows.")
    return {name: [row[name] for row in rows] for name in inputs}


def _array(path: Path, name: str, column: Any, feature: Feature) -> np.ndarray:
    if feature.dtype == "string":
        return np.asarray(column, object)
    if isinstance(column, list) and column and isinstance(column[0], str):
        column = [json.loads(value) for value in column]
    try:
        return (
            np.asarray(column).astype(numpy_dtype(feature.dtype), casting="same_kind") if len(column) else np.zeros(0)
        )
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{path}: column {name!r} cannot be read as {feature.dtype}: {error}.") from error


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray):
        return value.astype(np.float64).tolist() if value.dtype.kind == "V" else value.tolist()
    return value.item() if isinstance(value, np.generic) else value
