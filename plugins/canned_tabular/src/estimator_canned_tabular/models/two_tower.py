"""Retrieval models that represent queries and candidates as vectors. The product of two vectors is a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from estimator_canned_tabular.columns.checks import listed
from estimator_canned_tabular.layers.deep import DeepOptions, deep_logits
from estimator_canned_tabular.layers.dense_features import check_dense, dense_features
from estimator_canned_tabular.models.model_fn import ModelFn, head_model_fn, plan_of, train_everything
from estimator_canned_tabular.optimizers import RowSparse, choose_optimizer
from estimator_core.errors import ArgumentError, check_count

QUERY, CANDIDATE = "query", "candidate"


def two_tower_model_fn(
    head: Any,
    query_columns: Sequence[Any],
    candidate_columns: Sequence[Any],
    dimension: int = 32,
    hidden_units: Sequence[int] = (64,),
    normalize: bool = True,
    optimizer: Any = "Adagrad",
    activation_fn: Callable[..., Any] | None = None,
    dropout: float | None = None,
    *,
    keep_features: Sequence[str] = (),
    row_sparse: RowSparse | None = None,
) -> ModelFn:
    """Returns the model_fn of `TwoTowerEstimator`. The arguments are the same.

    Raises:
        ArgumentError: an argument cannot be used, or the head is for another dimension.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import RetrievalHead
        >>> model_fn = two_tower_model_fn(RetrievalHead(8), [numeric_column("age")], [numeric_column("price")], 8)
    """
    towers = {
        QUERY: listed(query_columns, "query_columns"),
        CANDIDATE: listed(candidate_columns, "candidate_columns"),
    }
    for name, columns in towers.items():
        check_dense(columns, f"{name}_columns")
    check_count("dimension", dimension)
    if head.logits_dimension not in (1, 2 * dimension):
        raise ArgumentError(
            f"head expects {head.logits_dimension} logits. Two towers of dimension {dimension} return one score, or "
            f"the vectors of both: RetrievalHead({dimension})."
        )
    options = DeepOptions.of(hidden_units, activation_fn, dropout, False)
    chosen = choose_optimizer(optimizer, None, row_sparse)
    plan = plan_of(head, (*towers[QUERY], *towers[CANDIDATE]), keep_features)

    def logits_of(features: Any, mode: str) -> Any:
        vectors: dict[str, jax.Array] = {}
        for name, columns in towers.items():
            inputs = dense_features(columns, features, plan, scope=f"{name}/input", row_sparse=chosen.row_sparse)
            vector = deep_logits(inputs, dimension, options, mode, scope=name)
            vectors[name] = _unit(vector) if normalize else vector
        if head.logits_dimension == 1:
            return jnp.sum(vectors[QUERY] * vectors[CANDIDATE], axis=1, keepdims=True)
        return vectors

    return head_model_fn(head, plan, logits_of, train_everything(chosen))


def _unit(vectors: jax.Array) -> jax.Array:
    return vectors * jax.lax.rsqrt(jnp.maximum(jnp.sum(vectors**2, axis=1, keepdims=True), 1e-12))
