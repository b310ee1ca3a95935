"""Deep and cross networks, second version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import estimator_core as ec
from estimator_canned_tabular.columns.checks import listed
from estimator_canned_tabular.layers.deep import DeepOptions, dense, hidden_layers
from estimator_canned_tabular.layers.dense_features import check_dense, dense_features
from estimator_canned_tabular.models.model_fn import ModelFn, head_model_fn, plan_of, train_everything
from estimator_canned_tabular.optimizers import RowSparse, choose_optimizer
from estimator_core.errors import ArgumentError, check_count

STRUCTURES = ("stacked", "parallel")
_SCOPE = "dcn"


def dcn_model_fn(
    head: Any,
    feature_columns: Sequence[Any],
    cross_layers: int = 3,
    hidden_units: Sequence[int] = (),
    projection_dim: int | None = None,
    structure: str = "stacked",
    optimizer: Any = "Adam",
    activation_fn: Callable[..., Any] | None = None,
    dropout: float | None = None,
    batch_norm: bool = False,
    *,
    row_sparse: RowSparse | None = None,
) -> ModelFn:
    """Returns the model_fn of `DCNEstimator`. The arguments are the same.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import RegressionHead
        >>> model_fn = dcn_model_fn(RegressionHead(), [numeric_column("x")], hidden_units=[8])
    """
    columns = listed(feature_columns, "feature_columns")
    check_dense(columns, "feature_columns")
    check_count("cross_layers", cross_layers)
    if projection_dim is not None:
        check_count("projection_dim", projection_dim)
    if structure not in STRUCTURES:
        raise ArgumentError(f"structure must be one of {', '.join(STRUCTURES)}, given: {structure!r}.")
    options = DeepOptions.of(hidden_units, activation_fn, dropout, batch_norm)
    chosen = choose_optimizer(optimizer, None, row_sparse)
    plan = plan_of(head, columns)

    def logits_of(features: Any, mode: str) -> jax.Array:
        inputs = dense_features(columns, features, plan, scope=f"{_SCOPE}/input", row_sparse=chosen.row_sparse)
        crossed = inputs
        for number in range(cross_layers):
            crossed = cross(inputs, crossed, projection_dim, f"{_SCOPE}/cross_{number}")
        if structure == "stacked":
            outputs = hidden_layers(crossed, options, mode, scope=_SCOPE)
        else:
            outputs = jnp.concatenate([crossed, hidden_layers(inputs, options, mode, scope=_SCOPE)], axis=1)
        return dense(outputs, head.logits_dimension, f"{_SCOPE}/logits")

    return head_model_fn(head, plan, logits_of, train_everything(chosen))


def cross(inputs: jax.Array, crossed: jax.Array, projection_dim: int | None, name: str) -> jax.Array:
    """Returns the output of one cross layer: `inputs * (W crossed + b) + crossed`, float32[batch, size].

    Args:
        inputs: the inputs of the first layer.
        crossed: the output of the previous layer.
        projection_dim: the rank of the two matrices whose product is W; None: W is a full matrix.
        name: the prefix of the names of the variables.
    """
    size = inputs.shape[1]
    if projection_dim is None:
        return inputs * dense(crossed, size, name) + crossed
    down = ec.get_variable(f"{name}/down", (size, projection_dim), jax.nn.initializers.glorot_uniform())
    return inputs * dense(crossed @ down, size, name) + crossed
