"""The feature columns of a schema."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax

from estimator_canned_tabular.cli.schema import ColumnSchema, Schema
from estimator_canned_tabular.columns import (
    categorical_column_with_hash_bucket,
    categorical_column_with_vocabulary_list,
    embedding_column,
    indicator_column,
    numeric_column,
)
from estimator_core.export import Feature

#: From this number of rows of a table of weights, a step should not change all of them.
_LARGE_TABLE = 10_000


def wide_columns(schema: Schema) -> list[Any]:
    """Returns the columns of a linear model."""
    return [_plain(name, column) for name, column in schema.columns.items() if column.kind != "skip"]


def deep_columns(schema: Schema) -> list[Any]:
    """Returns the columns of a deep model."""
    return [_dense(name, column) for name, column in schema.columns.items() if column.kind != "skip"]


def has_large_tables(schema: Schema) -> bool:
    """Returns whether a table is so large that updating only the rows of a batch saves time."""
    return any(max(column.buckets, len(column.words)) > _LARGE_TABLE for column in schema.columns.values())


def received(schema: Schema) -> dict[str, Feature]:
    """Returns the features that clients of an export send."""
    kinds = {"numeric": "float32", "boolean": "bool", "vocabulary": "string", "hash": "string"}
    return {
        name: Feature((None,), kinds[column.kind]) for name, column in schema.columns.items() if column.kind in kinds
    }


def _dense(name: str, column: ColumnSchema) -> Any:
    plain = _plain(name, column)
    if column.kind in ("numeric", "boolean"):
        return plain
    return embedding_column(plain, column.dimension) if column.dimension else indicator_column(plain)


def _plain(name: str, column: ColumnSchema) -> Any:
    if column.kind in ("numeric", "boolean"):

        def normalised(number: jax.Array) -> jax.Array:
            return (number - column.mean) / column.scale

        return numeric_column(name, normalizer_fn=normalised, missing=column.mean)
    if column.kind == "hash":
        return categorical_column_with_hash_bucket(
            name, column.buckets, missing_bucket=column.missing_category, dates=column.dates
        )
    words = categorical_column_with_vocabulary_list(
        name, column.words, num_oov_buckets=1, missing_bucket=column.missing_category, dates=column.dates
    )
    return replace(words, truths=column.truths)
