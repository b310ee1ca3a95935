"""Models that do not use the features. They learn the frequency of the classes, or the mean of the labels."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import estimator_core as ec
from estimator_canned_tabular.models.model_fn import ModelFn, contract_of, plan_of, train_everything, with_host_parts
from estimator_canned_tabular.optimizers import choose_optimizer
from estimator_core.errors import ArgumentError

_RATE = 0.3


def baseline_model_fn(head: Any, optimizer: Any = "Ftrl") -> ModelFn:
    """Returns the model_fn of `BaselineEstimator`. The arguments are the same.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_heads import RegressionHead
        >>> model_fn = baseline_model_fn(RegressionHead())
    """
    chosen = choose_optimizer(optimizer, _RATE)
    plan = plan_of(head, ())
    contract = contract_of(head, plan)

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        bias = ec.get_variable("baseline/bias", (head.logits_dimension,), jax.nn.initializers.zeros)
        logits = jnp.broadcast_to(bias, (_batch_size(features, labels), head.logits_dimension))
        contract.declare()
        return contract.head.create_estimator_spec(
            features, mode, logits, labels=labels, train_op_fn=train_everything(chosen)
        )

    return with_host_parts(model_fn, plan, contract)


def _batch_size(features: Any, labels: Any) -> int:
    leaves = jax.tree.leaves((features, labels))
    if not leaves:
        raise ArgumentError("A baseline needs a numeric feature or labels to count the examples.")
    return leaves[0].shape[0]
