"""Feature columns and arrays of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from estimator_canned_tabular.cli.rows import as_numbers
from estimator_canned_tabular.cli.schema import ColumnSchema, Schema
from estimator_canned_tabular.columns import (
    categorical_column_with_hash_bucket,
    categorical_column_with_vocabulary_list,
    embedding_column,
    numeric_column,
)
from estimator_core.errors import ArgumentError
from estimator_core.export import Feature


def wide_columns(schema: Schema) -> list[Any]:
    """Columns of a linear model."""
    return [_plain(name, column) for name, column in schema.columns.items() if column.kind != "skip"]


def deep_columns(schema: Schema) -> list[Any]:
    """Columns of a deep model."""
    made: list[Any] = []
    for name, column in schema.columns.items():
        if column.kind != "skip":
            plain = _plain(name, column)
            made.append(plain if column.kind == "numeric" else embedding_column(plain, column.dimension))
    return made


def arrays(schema: Schema, rows: Mapping[str, np.ndarray], where: str) -> dict[str, np.ndarray]:
    """The features of rows: float32[rows] or text.

    Raises:
        ArgumentError: a column is missing, or a number is none; the message names row and column.
    """
    made: dict[str, np.ndarray] = {}
    for name, column in schema.columns.items():
        if column.kind == "skip":
            continue
        if name not in rows:
            raise ArgumentError(f"{where} lacks the column {name!r}. Columns: {', '.join(rows)}.")
        if column.kind == "numeric":
            found = numbers(rows[name], name, where)
            made[name] = np.where(np.isnan(found), column.mean, found).astype(np.float32)
        else:
            made[name] = rows[name]
    return made


def numbers(values: np.ndarray, name: str, where: str) -> np.ndarray:
    """float64[rows].

    Raises:
        ArgumentError: a field is no number.
    """
    found = as_numbers(values)
    if found is None:
        row = next(row for row in range(len(values)) if as_numbers(values[row : row + 1]) is None)
        raise ArgumentError(f"{where}, row {row + 1}, column {name!r}: {values[row]!r} is no number.")
    return found


def received(schema: Schema) -> dict[str, Feature]:
    """What clients of an export send."""
    kinds = {"numeric": "float32", "vocabulary": "string", "hash": "string"}
    return {
        name: Feature((None,), kinds[column.kind]) for name, column in schema.columns.items() if column.kind in kinds
    }


def _plain(name: str, column: ColumnSchema) -> Any:
    if column.kind == "numeric":

        def normalised(number: jax.Array) -> jax.Array:
            return (number - column.mean) / column.scale

        return numeric_column(name, normalizer_fn=normalised)
    if column.kind == "hash":
        return categorical_column_with_hash_bucket(name, column.buckets)
    return categorical_column_with_vocabulary_list(name, column.words, num_oov_buckets=1)
