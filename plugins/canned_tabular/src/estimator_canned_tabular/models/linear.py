"""The model_fn of a weighted sum of the features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax

import estimator_core as ec
from estimator_canned_tabular.columns.checks import listed
from estimator_canned_tabular.columns.embedding import COMBINERS
from estimator_canned_tabular.layers.linear import SCOPE, check_linear, linear_logits
from estimator_canned_tabular.models.model_fn import ModelFn, head_model_fn, plan_of, train_everything
from estimator_canned_tabular.optimizers import RowSparse, choose_optimizer
from estimator_core.errors import ArgumentError
from estimator_heads import ftrl

_RATE = 0.2


def linear_model_fn(
    head: Any,
    feature_columns: Sequence[Any],
    optimizer: Any = "Ftrl",
    sparse_combiner: str = "sum",
    *,
    row_sparse: RowSparse | None = None,
) -> ModelFn:
    """Returns the model_fn of `LinearEstimator`. The arguments are the same.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import RegressionHead
        >>> model_fn = linear_model_fn(RegressionHead(), [numeric_column("x")])
    """
    columns = listed(feature_columns, "feature_columns")
    check_linear(columns, "feature_columns")
    check_combiner(sparse_combiner)
    if optimizer is None:  # only then the rate depends on the number of columns, as in tf.estimator
        optimizer = ftrl(linear_learning_rate(columns, _RATE))
    chosen = choose_optimizer(optimizer, _RATE, row_sparse)
    plan = plan_of(head, columns)

    def logits_of(features: Any, mode: str) -> Any:
        logits = linear_logits(
            columns,
            features,
            plan,
            units=head.logits_dimension,
            sparse_combiner=sparse_combiner,
            row_sparse=chosen.row_sparse,
        )
        write_bias(head.logits_dimension)
        return logits

    return head_model_fn(head, plan, logits_of, train_everything(chosen))


def linear_learning_rate(columns: Sequence[Any], highest: float) -> float:
    """Returns the learning rate of tf.estimator, which falls with the number of columns."""
    return min(highest, 1.0 / math.sqrt(max(len(columns), 1)))


def check_combiner(combiner: str) -> None:
    """Refuses an unknown combiner.

    Raises:
        ArgumentError: the combiner is unknown. The message names it.
    """
    if combiner not in COMBINERS:
        raise ArgumentError(f"sparse_combiner must be one of {', '.join(COMBINERS)}, given: {combiner!r}.")


def write_bias(units: int) -> None:
    """Writes the summary of the bias: a scalar, or a histogram of several values."""
    bias = ec.get_variable(f"{SCOPE}/bias_weights", (units,), jax.nn.initializers.zeros)
    if units == 1:
        ec.summary.scalar("bias", bias[0])
    else:
        ec.summary.histogram("bias", bias)
