"""Squared error and the Poisson loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax.numpy as jnp

if TYPE_CHECKING:
    from jax import Array


def squared_error(labels: Array, logits: Array) -> Array:
    """Returns `(labels - logits)**2` as float32 with the shape of `logits`.

    Example:
        >>> import jax.numpy as jnp
        >>> squared_error(jnp.array([[43.0]]), jnp.array([[45.0]])).tolist()
        [[4.0]]
    """
    difference = jnp.asarray(labels, jnp.float32) - jnp.asarray(logits, jnp.float32)
    return difference * difference


def log_poisson(labels: Array, logits: Array, *, compute_full_loss: bool = False) -> Array:
    """Returns the Poisson negative log likelihood of counts, given the logarithm of their rate.

    Args:
        labels: the counts, at least 0, with the shape of `logits`.
        logits: the logarithm of the predicted rate. The loss is computed in float32.
        compute_full_loss: whether to add Stirling's approximation of `log(labels!)`, for labels above 1.

    Returns:
        float32 with the shape of `logits`. Above logits of about 88, the rate exceeds float32, and the loss is infinite
        but never NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> float(log_poisson(jnp.array(1.0), jnp.array(0.0)))
        1.0

    Source: `tf.nn.log_poisson_loss`.
    """
    x, z = jnp.asarray(logits, jnp.float32), jnp.asarray(labels, jnp.float32)
    loss = jnp.exp(x) - x * z
    if compute_full_loss:
        above_one = jnp.where(z > 1.0, z, 1.0)
        stirling = above_one * jnp.log(above_one) - above_one + 0.5 * jnp.log(2.0 * math.pi * above_one)
        loss = loss + jnp.where(z > 1.0, stirling, 0.0)
    return loss
