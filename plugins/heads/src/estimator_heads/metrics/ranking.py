"""Metrics of ordered lists: NDCG and the mean reciprocal rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from estimator_core.errors import ArgumentError, check_count
from estimator_core.metrics import Mean, mean
from estimator_heads.metrics.top_k import broadcast_weights, ranks

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike


def ndcg(
    labels: ArrayLike,
    scores: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    k: int | None = None,
    valid: ArrayLike | None = None,
    exponential_gain: bool = True,
) -> Mean:
    """Returns the mean over lists of the normalized discounted cumulative gain.

    Of items with equal scores, the earlier one ranks higher. Lists without a relevant item are skipped.

    Args:
        labels: the relevance [batch, ..., list], at least 0.
        scores: the scores, with the same shape. A NaN at a valid place makes the value NaN.
        weights: a scalar, or one weight per list.
        k: the number of first places that count. None: all.
        valid: bool of the same shape, whether a place has an item. None: all places.
        exponential_gain: whether the gain of an item is `2**label - 1` instead of `label`.

    Raises:
        ArgumentError: k is not positive, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> ndcg(np.array([[1, 0, 2]]), np.array([[0.5, 0.1, 0.9]])).compute()
        1.0

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002; Burges et al., 2005.
    """
    relevance, values, usable = _lists(labels, scores, valid, "ndcg")
    if k is not None:
        check_count("ndcg: k", k)
    depth = values.shape[-1] if k is None else k
    gains = jnp.where(usable, 2.0**relevance - 1.0 if exponential_gain else relevance, 0.0)
    achieved = _discounted(gains, ranks(jnp.where(usable, values, -jnp.inf)), depth)
    ideal = _discounted(gains, ranks(gains), depth)
    share = achieved / jnp.where(ideal > 0, ideal, 1.0)
    share = jnp.where((jnp.isnan(values) & usable).any(axis=-1), jnp.nan, share)
    return mean(share, jnp.where(ideal > 0, broadcast_weights(weights, share), 0.0))


def mean_reciprocal_rank(
    labels: ArrayLike,
    scores: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    k: int | None = None,
    valid: ArrayLike | None = None,
) -> Mean:
    """Returns the mean over lists of 1 / the rank of the first relevant item, or 0 if it is not among the first k.

    Args:
        labels: [batch, ..., list]. Anything above 0 is relevant. Lists without a relevant item are skipped.
        scores: the scores, with the same shape. A NaN at a valid place makes the value NaN. Ties are ranked as in
            `ndcg`.
        weights: a scalar, or one weight per list.
        k: the number of first places that count. None: all.
        valid: bool of the same shape, whether a place has an item. None: all places.

    Raises:
        ArgumentError: k is not positive, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> mean_reciprocal_rank(np.array([[0, 1, 0]]), np.array([[0.9, 0.5, 0.1]])).compute()
        0.5
    """
    relevance, values, usable = _lists(labels, scores, valid, "mean_reciprocal_rank")
    if k is not None:
        check_count("mean_reciprocal_rank: k", k)
    depth = values.shape[-1] if k is None else k
    relevant = usable & (relevance > 0)
    places = ranks(jnp.where(usable, values, -jnp.inf))
    first = jnp.min(jnp.where(relevant, places, values.shape[-1]), axis=-1)
    share = jnp.where(first < depth, 1.0 / (first + 1.0), 0.0)
    share = jnp.where((jnp.isnan(values) & usable).any(axis=-1), jnp.nan, share)
    return mean(share, jnp.where(relevant.any(axis=-1), broadcast_weights(weights, share), 0.0))


def _lists(labels: ArrayLike, scores: ArrayLike, valid: ArrayLike | None, metric: str) -> tuple[Array, Array, Array]:
    relevance, values = jnp.asarray(labels, jnp.float32), jnp.asarray(scores, jnp.float32)
    usable = jnp.ones(values.shape, bool) if valid is None else jnp.asarray(valid, bool)
    if relevance.shape != values.shape or usable.shape != values.shape or values.ndim < 2:
        raise ArgumentError(
            f"{metric}: labels, scores and valid need one shape [batch, ..., list]; got {relevance.shape}, "
            f"{values.shape}, {usable.shape}."
        )
    return relevance, values, usable


def _discounted(gains: Array, places: Array, depth: int) -> Array:
    discount = jnp.where(places < depth, 1.0 / jnp.log2(places + 2.0), 0.0)
    return jnp.sum(gains * discount, axis=-1)
