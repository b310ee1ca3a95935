"""The columns of sequences, concatenated for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from estimator_canned_tabular.columns.embedding import EmbeddingColumn
from estimator_canned_tabular.columns.indicator import IndicatorColumn
from estimator_canned_tabular.columns.sequence import SequenceCategoricalColumn, SequenceNumericColumn
from estimator_canned_tabular.host.plan import FeaturePlan
from estimator_canned_tabular.layers.dense_features import by_name, placed, table_name
from estimator_canned_tabular.layers.inputs import Features, ids_of
from estimator_canned_tabular.layers.lookup import embedding_rows
from estimator_canned_tabular.optimizers import RowSparse
from estimator_core.errors import ArgumentError


def sequence_features(
    columns: Sequence[Any], features: Features, plan: FeaturePlan, *, scope: str, row_sparse: RowSparse
) -> tuple[jax.Array, jax.Array]:
    """Returns the concatenated columns, float32[batch, steps, sum of widths], and the lengths, int32[batch].

    Args:
        columns: columns of sequences of numbers, or embeddings and indicators of sequences.
        features: the features on the device.
        plan: the plan that transformed the features.
        scope: the prefix of the names of embedding tables.
        row_sparse: see `table_rows`.

    Raises:
        ArgumentError: columns have different numbers of steps.
    """
    parts: list[jax.Array] = []
    lengths: jax.Array | None = None
    for column, place in placed(columns, scope):
        made, lengths = _steps(column, features, plan, scope=place, row_sparse=row_sparse)
        parts.append(made)
    assert lengths is not None
    found = {column.name: part.shape[1] for column, part in zip(by_name(columns), parts, strict=True)}
    if len(set(found.values())) > 1:
        raise ArgumentError(
            f"Sequences must have the same number of steps, given {found}: give all columns the same max_values."
        )
    return jnp.concatenate(parts, axis=-1), lengths


def _steps(
    column: Any, features: Features, plan: FeaturePlan, *, scope: str, row_sparse: RowSparse
) -> tuple[jax.Array, jax.Array]:
    if isinstance(column, SequenceNumericColumn):
        output = plan.outputs[column]
        numbers, steps = jnp.asarray(features[f"{output}.numbers"], jnp.float32), features[f"{output}.lengths"]
        if column.normalizer_fn is None:
            return numbers.reshape(*numbers.shape[:2], column.width), steps
        normal = jnp.asarray(column.normalizer_fn(numbers), jnp.float32)
        normal = normal.reshape(*numbers.shape[:2], column.width)
        # As in TensorFlow, padding is not normalised: jnp.log would make it -inf.
        return jnp.where((jnp.arange(normal.shape[1]) < steps[:, None])[..., None], normal, column.default_value), steps
    given = ids_of(column.categorical_column, features, plan)
    assert given.lengths is not None
    buckets = column.categorical_column.num_buckets
    if isinstance(column, IndicatorColumn):
        return jax.nn.one_hot(given.ids, buckets), given.lengths
    ids = _touched(given.ids, given.lengths, row_sparse)
    rows = embedding_rows(column.table, table_name(column, scope), ids, buckets, row_sparse=row_sparse)
    return jnp.where((given.ids >= 0)[..., None], rows, 0.0), given.lengths


def _touched(ids: jax.Array, lengths: jax.Array, row_sparse: RowSparse) -> jax.Array:
    """Returns the ids whose rows the step changes, int32[batch, steps].

    With "as_tf" they equal those of `safe_embedding_lookup_sparse`: a step without a category looks up row 0, whose
    value is not used. This holds for all steps up to the longest sequence of the batch.
    """
    if row_sparse != "as_tf" or not ids.shape[1]:
        return ids
    return jnp.where((ids < 0) & (jnp.arange(ids.shape[1]) < jnp.max(lengths)), 0, ids)


def check_sequences(columns: Sequence[Any]) -> None:
    """Refuses columns that are not sequences, before any tracing.

    Raises:
        ArgumentError: naming the column and what to do.
    """
    if not columns:
        raise ArgumentError("sequence_feature_columns must not be empty.")
    by_name(columns)
    for column in columns:
        sequence = isinstance(column, SequenceNumericColumn) or (
            isinstance(column, (EmbeddingColumn, IndicatorColumn))
            and isinstance(column.categorical_column, SequenceCategoricalColumn)
        )
        if not sequence:
            raise ArgumentError(
                "Items of sequence_feature_columns must be sequence_numeric_column, or embedding_column or "
                f"indicator_column of sequence_categorical_column_with_... Given: {column}"
            )
