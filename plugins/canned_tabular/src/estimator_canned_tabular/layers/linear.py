"""A linear model of columns, with one weight per number and one per category."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

import estimator_core as ec
from estimator_canned_tabular.columns.contract import CategoricalColumn, DenseColumn
from estimator_canned_tabular.columns.sequence import SequenceCategoricalColumn, SequenceNumericColumn
from estimator_canned_tabular.host.plan import FeaturePlan
from estimator_canned_tabular.layers.dense_features import by_name, dense_output, placed
from estimator_canned_tabular.layers.inputs import Features, ids_of
from estimator_canned_tabular.layers.lookup import combine, looked_up, table_rows
from estimator_canned_tabular.optimizers import RowSparse
from estimator_core.errors import ArgumentError

SCOPE = "linear/linear_model"


def linear_logits(
    columns: Sequence[Any],
    features: Features,
    plan: FeaturePlan,
    *,
    units: int,
    sparse_combiner: str = "sum",
    row_sparse: RowSparse = True,
) -> jax.Array:
    """Returns the bias plus the sum of all columns times their weights, float32[batch, units]. Weights start at zero.

    Args:
        columns: any columns. Categorical columns are used directly.
        features: the features on the device.
        plan: the plan that transformed the features.
        units: the number of logits.
        sparse_combiner: the way to combine the values of a categorical column: "sum", "mean" or "sqrtn".
        row_sparse: see `table_rows`.
    """
    zeros = jax.nn.initializers.zeros
    total = ec.get_variable(f"{SCOPE}/bias_weights", (units,), zeros)
    for column, place in placed(columns, SCOPE):
        name = f"{place}/weights"
        if isinstance(column, CategoricalColumn):
            given = ids_of(column, features, plan)
            ids = looked_up(given, sparse_combiner, row_sparse)
            rows = table_rows(name, ids, (column.num_buckets, units), zeros, row_sparse=row_sparse)
            total = total + combine(rows, given, sparse_combiner)
        else:
            numbers = dense_output(column, features, plan, scope=place, row_sparse=row_sparse)
            weights = ec.get_variable(name, (column.width, units), zeros)
            total = total + jnp.matmul(numbers, weights)
    return total


def check_linear(columns: Sequence[Any], what: str) -> None:
    """Refuses columns that a linear model cannot read, before any tracing.

    Raises:
        ArgumentError: there are no columns, two have one name, or one cannot be read. The message names the column.
    """
    if not columns:
        raise ArgumentError(f"{what} must not be empty.")
    by_name(columns)
    for column in columns:
        if isinstance(column, (SequenceNumericColumn, SequenceCategoricalColumn)) or not isinstance(
            column, (CategoricalColumn, DenseColumn)
        ):
            raise ArgumentError(f"Items of {what} must be dense or categorical columns. Given: {column}")
