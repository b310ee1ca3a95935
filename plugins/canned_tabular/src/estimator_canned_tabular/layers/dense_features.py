"""`DenseFeatures`: the columns of a model side by side."""

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
    """The columns' numbers side by side, sorted by the columns' names, float32[batch, sum of widths].

    Args:
        columns: dense columns: numeric, bucketized, indicator, embedding.
        features: features on the device.
        plan: the plan that transformed the features.
        scope: what the names of embedding tables begin with.
        row_sparse: see `table_rows`.
    """
    parts = [
        dense_output(column, features, plan, scope=place, row_sparse=row_sparse)
        for column, place in placed(columns, scope)
    ]
    return jnp.concatenate(parts, axis=1)


def dense_output(column: Any, features: Features, plan: FeaturePlan, *, scope: str, row_sparse: RowSparse) -> jax.Array:
    """One dense column, float32[batch, width]; its variables lie below `scope`."""
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
    """How often each id occurs, or the sum of its weights, float32[batch, buckets]."""
    batch, _ = given.ids.shape
    weights = jnp.ones(given.ids.shape, jnp.float32) if given.weights is None else given.weights
    places = jnp.where(given.ids < 0, buckets, given.ids)
    rows = jnp.arange(batch)[:, None]
    return jnp.zeros((batch, buckets), jnp.float32).at[rows, places].add(weights, mode="drop")


def by_name(columns: Iterable[Any]) -> list[Any]:
    """Columns in the order in which layers combine them.

    Raises:
        ArgumentError: two columns of one name.
    """
    ordered = sorted(columns, key=lambda column: column.name)
    for first, second in pairwise(ordered):
        if first.name == second.name:
            raise ArgumentError(f"Duplicate feature column name found for columns: {first} and {second}.")
    return ordered


def check_dense(columns: Sequence[Any], what: str) -> None:
    """Refuses columns that are not dense, before anything is traced.

    Raises:
        ArgumentError: naming the column and the cure.
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
    """The variable of an embedding."""
    return column.table.collection or f"{scope}/embedding_weights"


def shared_tables(columns: Iterable[Any]) -> set[str]:
    """Names of the tables that several columns share; they have no scope."""
    return {
        column.table.collection
        for column in columns
        if isinstance(column, EmbeddingColumn) and column.table.collection is not None
    }


def placed(columns: Iterable[Any], scope: str) -> list[tuple[Any, str]]:
    """Columns by name, each with what the names of its variables begin with, which no other column has.

    Names of variables have no spaces and no letters beyond ASCII, so columns that differ in those alone would have one
    variable. Then the fingerprint of its name tells each of them apart, whatever columns come later.
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
