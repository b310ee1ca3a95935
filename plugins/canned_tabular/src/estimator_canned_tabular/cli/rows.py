"""Rows of a CSV file, in memory."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from estimator_core.errors import ArgumentError


def read_rows(path: Path) -> dict[str, np.ndarray]:
    """The columns of a CSV file with a header, object[rows] of text.

    Raises:
        ArgumentError: a file that cannot be read; the message names file and line.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, None)
            if not header or len(set(header)) != len(header):
                raise ArgumentError(f"{path}, line 1: it must name the columns, each once; found {header}.")
            rows: list[list[str]] = []
            for row in reader:
                if row and len(row) != len(header):
                    raise ArgumentError(
                        f"{path}, line {reader.line_num}: {len(row)} fields, and the header names {len(header)}."
                    )
                rows += [row] if row else []
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path} is not UTF-8: {error}.") from error
    except csv.Error as error:
        raise ArgumentError(f"{path} cannot be read: {error}.") from error
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}.") from error
    if not rows:
        raise ArgumentError(f"{path} has no rows.")
    columns = zip(*rows, strict=True)
    return {name: np.array(values, object) for name, values in zip(header, columns, strict=True)}


def as_numbers(column: np.ndarray) -> np.ndarray | None:
    """float64[rows], NaN where a field is empty; None where a field is no number."""
    try:
        return np.array([float(value) if value.strip() else np.nan for value in column.tolist()])
    except ValueError:
        return None
