"""The dense columns of a model, concatenated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from estimator_canned_tabular.columns.contract import DenseColumn
from estimator_canned_tabular.columns.embedding import EmbeddingColumn
from estimator_canned_tabular.columns.indicator import IndicatorColumn
from estimator_canned_tabular.columns.numeric import BucketizedColumn, NumericColumn
from estimator_canned_tabular.columns.sequence import SequenceCategoricalColumn, SequenceNumericColumn
from estimator_canned_tabular.hashing.fingerprint import fingerprint64
from estimator_canned_tabular.host.plan import FeaturePlan
from estimator_canned_tabular.layers.inputs import DeviceIds, Features, ids_of, numbers_of
from estimator_canned_tabular.layers.lookup import combine, embedding_rows, looked_up
from estimator_canned_tabular.optimizers import RowSparse
from estimator_core.errors import ArgumentError


def dense_features(
    columns: Iterable[Any], features: Features, plan: FeaturePlan, *, scope: str, row_sparse: RowSparse
) -> jax.Array:
    """Returns the values of the columns, concatenated in the order of names, float32[batch, sum of widths].

    Args:
        columns: dense columns: numeric, bucketized, indicator, embedding.
        features: the features on the device.
        plan: the plan that transformed the features.
        scope: the prefix of the names of embedding tables.
        row_sparse: see `table_rows`.
    """
    parts = [
        dense_output(column, features, plan, scope=place, row_sparse=row_sparse)
        for column, place in placed(columns, scope)
    ]
    return jnp.concatenate(parts, axis=1)


def dense_output(column: Any, features: Features, plan: FeaturePlan, *, scope: str, row_sparse: RowSparse) -> jax.Array:
    """Returns one dense column, float32[batch, width]. The names of its variables start with `scope`."""
    if isinstance(column, NumericColumn):
        return numbers_of(column, features)
    if isinstance(column, BucketizedColumn):
        return counts(ids_of(column, features, plan), column.num_buckets)
    given = ids_of(column.categorical_column, features, plan)
    buckets = column.categorical_column.num_buckets
    if isinstance(column, IndicatorColumn):
        return counts(given, buckets)
    ids = looked_up(given, column.table.combiner, row_sparse)
    rows = embedding_rows(column.table, table_name(column, scope), ids, buckets, row_sparse=row_sparse)
    return combine(rows, given, column.table.combiner)


def counts(given: DeviceIds, buckets: int) -> jax.Array:
    """Returns the count of each id, or the sum of its weights, float32[batch, buckets]."""
    batch, _ = given.ids.shape
    weights = jnp.ones(given.ids.shape, jnp.float32) if given.weights is None else given.weights
    places = jnp.where(given.ids < 0, buckets, given.ids)
    rows = jnp.arange(batch)[:, None]
    return jnp.zeros((batch, buckets), jnp.float32).at[rows, places].add(weights, mode="drop")


def by_name(columns: Iterable[Any]) -> list[Any]:
    """Returns columns in the order in which layers combine them.

    Raises:
        ArgumentError: two columns have one name.
    """
    ordered = sorted(columns, key=lambda column: column.name)
    for first, second in pairwise(ordered):
        if first.name == second.name:
            raise ArgumentError(f"Duplicate feature column name found for columns: {first} and {second}.")
    return ordered


def check_dense(columns: Sequence[Any], what: str) -> None:
    """Refuses columns that are not dense, before any tracing.

    Raises:
        ArgumentError: naming the column and what to do.
    """
    if not columns:
        raise ArgumentError(f"{what} must not be empty.")
    by_name(columns)
    for column in columns:
        if isinstance(column, SequenceNumericColumn) or isinstance(
            getattr(column, "categorical_column", None), SequenceCategoricalColumn
        ):
            raise ArgumentError(
                f"The column {column.name!r} is a sequence; {what} take columns without sequences. Use the column "
                "without `sequence_`, or an RNN estimator."
            )
        if not isinstance(column, DenseColumn):
            raise ArgumentError(
                f"Items of {what} must be dense columns. You can wrap a categorical column with an embedding_column or "
                f"indicator_column. Given: {column}"
            )


def table_name(column: EmbeddingColumn, scope: str) -> str:
    """Returns the name of the variable of an embedding."""
    return column.table.collection or f"{scope}/embedding_weights"


def shared_tables(columns: Iterable[Any]) -> set[str]:
    """Returns the names of the tables that several columns share. They have no scope."""
    return {
        column.table.collection
        for column in columns
        if isinstance(column, EmbeddingColumn) and column.table.collection is not None
    }


def placed(columns: Iterable[Any], scope: str) -> list[tuple[Any, str]]:
    """Returns columns by name, each with a prefix for the names of its variables that no other column has.

    Names of variables have no spaces and only ASCII letters, so columns that differ only in other characters would
    share a variable. The fingerprint of the name distinguishes such columns, independent of columns that are added
    later.
    """
    ordered = by_name(columns)
    plain = {column.name: re.sub(r"[^A-Za-z0-9_.\-]", "_", column.name) for column in ordered}
    uses = Counter(plain.values())
    return [
        (
            column,
            f"{scope}/{said}" if uses[said] == 1 or said == column.name else f"{scope}/{said}_{_mark(column.name)}",
        )
        for column, said in ((column, plain[column.name]) for column in ordered)
    ]


def _mark(name: str) -> str:
    return format(int(fingerprint64([name.encode()])[0]), "016x")
