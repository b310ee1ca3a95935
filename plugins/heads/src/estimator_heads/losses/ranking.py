"""Losses over lists. Each row of scores is one list to rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from jax import Array


def pairwise_logistic(labels: Array, scores: Array, valid: Array) -> Array:
    """Returns the mean of `log(1 + exp(lower - higher))` over the pairs of a list with different labels (RankNet).

    Args:
        labels: the relevance [..., list]. Higher is better.
        scores: [..., list]. The loss is computed in float32.
        valid: bool [..., list], whether a place of the list has an item.

    Returns:
        float32 [...]. It is 0 for a list without such a pair.

    Example:
        >>> import jax.numpy as jnp
        >>> valid = jnp.array([[True, True]])
        >>> round(float(pairwise_logistic(jnp.array([[1, 0]]), jnp.array([[2.0, 2.0]]), valid)[0]), 6)
        0.693147

    Source: Burges et al., "Learning to Rank using Gradient Descent", 2005.
    """
    s, relevance = jnp.asarray(scores, jnp.float32), jnp.asarray(labels, jnp.float32)
    s = jnp.where(valid, s, 0.0)
    ordered = relevance[..., :, None] > relevance[..., None, :]
    ordered = ordered & valid[..., :, None] & valid[..., None, :]
    losses = -jax.nn.log_sigmoid(s[..., :, None] - s[..., None, :])
    pairs = jnp.sum(ordered, axis=(-2, -1)).astype(jnp.float32)
    return jnp.sum(jnp.where(ordered, losses, 0.0), axis=(-2, -1)) / jnp.maximum(pairs, 1.0)


def listwise_softmax(labels: Array, scores: Array, valid: Array) -> Array:
    """Returns the cross entropy between the labels of a list, scaled to sum to 1, and the softmax of its scores.

    Args:
        labels: the relevance [..., list], at least 0.
        scores: [..., list]. The loss is computed in float32.
        valid: bool [..., list], whether a place of the list has an item.

    Returns:
        float32 [...]. It is 0 for a list without a relevant item.

    Example:
        >>> import jax.numpy as jnp
        >>> valid = jnp.array([[True, True, False]])
        >>> round(float(listwise_softmax(jnp.array([[1, 0, 9]]), jnp.zeros((1, 3)), valid)[0]), 6)
        0.693147

    Source: Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", 2007; Bruch et al., 2019.
    """
    # A finite number instead of minus infinity. Its softmax and its gradients are 0.
    s = jnp.where(valid, jnp.asarray(scores, jnp.float32), jnp.finfo(jnp.float32).min)
    relevance = jnp.where(valid, jnp.asarray(labels, jnp.float32), 0.0)
    sums = jnp.sum(relevance, axis=-1, keepdims=True)
    target = relevance / jnp.where(sums > 0.0, sums, 1.0)
    return -jnp.sum(jnp.where(valid, target * jax.nn.log_softmax(s), 0.0), axis=-1)
