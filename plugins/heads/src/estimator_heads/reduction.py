"""Reduces losses per example to the loss of a batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import jax.numpy as jnp

from estimator_core.errors import ArgumentError
from estimator_core.metrics import padding_mask

if TYPE_CHECKING:
    from jax import Array


class Reduction:
    """The reduction of the losses of a batch to one number.

    `SUM_OVER_BATCH_SIZE` divides the weighted sum by the number of losses, not by the sum of the weights.

    Source: `tf.keras.losses.Reduction`.
    """

    SUM: Final = "sum"
    SUM_OVER_BATCH_SIZE: Final = "sum_over_batch_size"
    ALL: Final = ("sum", "sum_over_batch_size")


def check_reduction(loss_reduction: str) -> None:
    """Refuses a value that is not a `Reduction`.

    Raises:
        ArgumentError: the value is invalid, such as "none".
    """
    if loss_reduction not in Reduction.ALL:
        raise ArgumentError(f"Invalid loss_reduction: {loss_reduction!r}. It must be one of {Reduction.ALL}.")


def reduce_loss(unweighted: Array, weights: Array | None, loss_reduction: str) -> Array:
    """Returns the loss of a batch. Padding rows (`ec.example_weights`) count neither in the sum nor in its divisor.

    Args:
        unweighted: float32 [batch, ...], one loss per example or output.
        weights: float32, broadcast against `unweighted`, or None.
        loss_reduction: one of `Reduction`.

    Returns:
        A float32 scalar, or 0 without losses.

    Example:
        >>> import jax.numpy as jnp
        >>> float(reduce_loss(jnp.array([[1.0], [2.0]]), jnp.array([[3.0], [0.5]]), "sum_over_batch_size"))
        2.0
    """
    weighted = unweighted if weights is None else unweighted * weights
    mask = padding_mask(unweighted.shape, metric="the loss of a head")
    size = jnp.asarray(unweighted.size, jnp.float32)  # in exports, the size is a symbol
    if mask is not None:
        weighted = jnp.where(mask, weighted, 0.0)
        size = jnp.sum(mask).astype(jnp.float32) * math.prod(unweighted.shape[1:])
    loss = jnp.sum(weighted)
    return loss if loss_reduction == Reduction.SUM else loss / jnp.maximum(size, 1.0)
