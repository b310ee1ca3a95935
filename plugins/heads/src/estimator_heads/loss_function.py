"""The loss_fn that a user passes to a head."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError

LossFn = Callable[..., Any]

_REQUIRED = ("labels", "logits")
_ALLOWED = (*_REQUIRED, "features", "loss_reduction")


def check_loss_fn(loss_fn: LossFn | None) -> None:
    """Refuses a loss_fn with arguments that a head cannot pass.

    Raises:
        ArgumentError: an argument is missing or unexpected.

    Example:
        >>> check_loss_fn(lambda labels, logits, features: labels - logits)
    """
    if loss_fn is None:
        return
    names = _argument_names(loss_fn)
    for required in _REQUIRED:
        if required not in names:
            raise ArgumentError(f"loss_fn must contain argument: {required}. Given arguments: {names}")
    unexpected = [name for name in names if name not in _ALLOWED]
    if unexpected:
        raise ArgumentError(f"loss_fn has unexpected args: {unexpected}. It may take {list(_ALLOWED)}.")


def call_loss_fn(
    loss_fn: LossFn,
    *,
    labels: jax.Array,
    logits: jax.Array,
    features: Mapping[str, Any] | None,
    loss_reduction: str,
    dimension: int = 1,
) -> jax.Array:
    """Calls a checked loss_fn with the arguments that it accepts.

    Args:
        loss_fn: accepts `labels` and `logits`, and optionally `features` and `loss_reduction`.
        labels: the labels after processing by the head: ids, or float32.
        logits: float32 [D0, ..., DN, logits_dimension].
        features: the features.
        loss_reduction: the reduction of the head.
        dimension: the required size of the last axis of the loss.

    Returns:
        float32 [D0, ..., DN, dimension].

    Raises:
        ArgumentError: the loss has the wrong shape.
    """
    optional = {"features": features, "loss_reduction": loss_reduction}
    names = _argument_names(loss_fn)
    given = {name: value for name, value in optional.items() if name in names}
    loss = jnp.asarray(loss_fn(labels=labels, logits=logits, **given), jnp.float32)
    if loss.shape != (*logits.shape[:-1], dimension):
        raise ArgumentError(
            f"loss_fn must return Tensor of shape [D0, D1, ... DN, {dimension}]. logits_shape: {logits.shape}, "
            f"loss_shape: {loss.shape}. Return one loss an example and leave the reduction to the head."
        )
    return loss


def _argument_names(loss_fn: LossFn) -> list[str]:
    return list(inspect.signature(loss_fn).parameters)
