"""Deep learning recommendation models, which combine products of embeddings with dense features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_canned_tabular.columns.checks import listed
from estimator_canned_tabular.columns.embedding import EmbeddingColumn
from estimator_canned_tabular.layers.deep import DeepOptions, deep_logits, dense, hidden_layers
from estimator_canned_tabular.layers.dense_features import by_name, check_dense, dense_features, dense_output, placed
from estimator_canned_tabular.models.model_fn import ModelFn, head_model_fn, plan_of, train_everything
from estimator_canned_tabular.optimizers import RowSparse, choose_optimizer
from estimator_core.errors import ArgumentError

_SCOPE = "dlrm"


def dlrm_model_fn(
    head: Any,
    dense_columns: Sequence[Any],
    embedding_columns: Sequence[EmbeddingColumn],
    bottom_units: Sequence[int] = (64,),
    top_units: Sequence[int] = (64, 32),
    optimizer: Any = "Adagrad",
    activation_fn: Callable[..., Any] | None = None,
    dropout: float | None = None,
    *,
    row_sparse: RowSparse | None = None,
) -> ModelFn:
    """Returns the model_fn of `DLRMEstimator`. The arguments are the same.

    Raises:
        ArgumentError: an argument cannot be used, or embeddings have different dimensions.

    Example:
        >>> from estimator_canned_tabular import categorical_column_with_identity, embedding_column, numeric_column
        >>> from estimator_heads import BinaryClassHead
        >>> ad = embedding_column(categorical_column_with_identity("ad", 100), 8)
        >>> model_fn = dlrm_model_fn(BinaryClassHead(), [numeric_column("x")], [ad])
    """
    numbers = listed(dense_columns, "dense_columns")
    tables = tuple(by_name(listed(embedding_columns, "embedding_columns")))
    check_dense(tables, "embedding_columns")
    if numbers:
        check_dense(numbers, "dense_columns")
    dimensions = {getattr(column, "width", None) for column in tables}
    if not all(isinstance(column, EmbeddingColumn) for column in tables) or len(dimensions) > 1:
        raise ArgumentError(
            f"embedding_columns must be embeddings of one dimension: {[(c.name, c.width) for c in tables]}."
        )
    (dimension,) = dimensions
    bottom = DeepOptions.of(bottom_units, activation_fn, dropout, False)
    top = DeepOptions.of(top_units, activation_fn, dropout, False)
    chosen = choose_optimizer(optimizer, None, row_sparse)
    plan = plan_of(head, (*numbers, *tables))

    def logits_of(features: Any, mode: str) -> jax.Array:
        scope, sparse = f"{_SCOPE}/input", chosen.row_sparse
        vectors = [
            dense_output(column, features, plan, scope=place, row_sparse=sparse)
            for column, place in placed(tables, scope)
        ]
        beside: list[jax.Array] = []
        if numbers:
            inputs = dense_features(numbers, features, plan, scope=scope, row_sparse=sparse)
            hidden = hidden_layers(inputs, bottom, mode, scope=f"{_SCOPE}/bottom")
            beside = [bottom.activation_fn(dense(hidden, int(dimension or 0), f"{_SCOPE}/bottom/output"))]
        joined = jnp.concatenate([*beside, products([*beside, *vectors])], axis=1)
        return deep_logits(joined, head.logits_dimension, top, mode, scope=f"{_SCOPE}/top")

    return head_model_fn(head, plan, logits_of, train_everything(chosen))


def products(vectors: Sequence[jax.Array]) -> jax.Array:
    """Returns the scalar product of each pair of vectors, float32[batch, pairs].

    Args:
        vectors: the vectors, each float32[batch, dimension].
    """
    stacked = jnp.stack(vectors, axis=1)
    every = jnp.einsum("bid,bjd->bij", stacked, stacked)
    rows, columns = np.tril_indices(len(vectors), -1)
    return every[:, rows, columns]
