"""Metrics of whether the right classes are among the k classes with the highest scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError, check_count
from estimator_core.metrics import Mean, mean

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike


def top_k_accuracy(labels: ArrayLike, scores: ArrayLike, k: int, weights: ArrayLike | None = None) -> Mean:
    """Returns the fraction of examples whose class is among the k classes with the highest scores.

    Of classes with equal scores, the one with the lower id ranks higher.

    Args:
        labels: integer class ids [batch, ...]. An id out of range or a NaN score makes the value NaN.
        scores: [batch, ..., classes].
        k: the number of classes, at least 1.
        weights: a scalar, or one weight per example.

    Raises:
        ArgumentError: k is not positive, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> top_k_accuracy(np.array([2, 0]), np.array([[0.1, 0.5, 0.4], [0.2, 0.3, 0.5]]), k=2).compute()
        0.5
    """
    ids, values = jnp.asarray(labels), jnp.asarray(scores)
    if ids.ndim == values.ndim and ids.shape[-1] == 1:
        ids = ids[..., 0]
    check_count("top_k_accuracy: k", k)
    if ids.shape != values.shape[:-1]:
        raise ArgumentError(
            f"top_k_accuracy: it takes class ids [...] and scores [..., classes]; got shapes "
            f"{ids.shape} and {values.shape}."
        )
    inside = (ids >= 0) & (ids < values.shape[-1])
    chosen = jnp.where(inside, ids, 0)[..., None]
    place = jnp.take_along_axis(ranks(values), chosen, axis=-1)[..., 0]
    unusable = ~inside | jnp.isnan(values).any(axis=-1)
    return mean(jnp.where(unusable, jnp.nan, (place < k).astype(jnp.float32)), weights)


def recall_at_k(labels: ArrayLike, scores: ArrayLike, k: int, weights: ArrayLike | None = None) -> Mean:
    """Returns the mean over examples of the fraction of their relevant classes that are among the k best.

    Examples without a relevant class are skipped. Ties are ranked as in `top_k_accuracy`.

    Args:
        labels: multi-hot [batch, ..., classes], where anything except 0 is relevant. Or integer class ids [batch, ...]
            or [batch, ..., n], of another shape than the scores. An id out of range counts as not found.
        scores: [batch, ..., classes]. A NaN makes the value NaN.
        k: the number of classes, at least 1.
        weights: a scalar, or one weight per example.

    Raises:
        ArgumentError: k is not positive, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> recall_at_k(np.array([[1, 0, 1]]), np.array([[0.9, 0.5, 0.1]]), k=2).compute()
        0.5
    """
    given, values = jnp.asarray(labels), jnp.asarray(scores)
    ids = jnp.issubdtype(given.dtype, jnp.integer) and given.shape != values.shape
    missed = jnp.zeros((), jnp.int32)
    if ids and values.shape[:-1] in (given.shape, given.shape[:-1]):
        listed = given[..., None] if given.shape == values.shape[:-1] else given
        classes = values.shape[-1]
        missed = jnp.sum((listed < 0) | (listed >= classes), axis=-1)
        given = jax.nn.one_hot(listed, classes, dtype=jnp.int32).max(axis=-2)
    relevant = given != 0
    check_count("recall_at_k: k", k)
    if relevant.shape != values.shape:
        raise ArgumentError(
            f"recall_at_k: it takes scores [..., classes], and labels of that shape or class ids; got shapes "
            f"{relevant.shape} and {values.shape}."
        )
    wanted = jnp.sum(relevant, axis=-1) + missed
    found = jnp.sum(relevant & (ranks(values) < k), axis=-1)
    share = found / jnp.maximum(wanted, 1)
    share = jnp.where(jnp.isnan(values).any(axis=-1), jnp.nan, share)
    return mean(share, jnp.where(wanted > 0, broadcast_weights(weights, share), 0.0))


def ranks(scores: Array) -> Array:
    """Returns the rank of each score in its row, 0 for the highest. Of equal scores, the earlier one ranks higher."""
    order = jnp.argsort(-scores, axis=-1, stable=True)
    return jnp.argsort(order, axis=-1, stable=True)


def broadcast_weights(weights: ArrayLike | None, like: Array) -> Array:
    """Returns weights per example (or None) as float32 with the shape of `like`."""
    array = jnp.ones((), jnp.float32) if weights is None else jnp.asarray(weights, jnp.float32)
    if array.ndim == like.ndim + 1 and array.shape[-1] == 1:
        array = array[..., 0]
    return jnp.broadcast_to(array.reshape(array.shape + (1,) * (like.ndim - array.ndim)), like.shape)
