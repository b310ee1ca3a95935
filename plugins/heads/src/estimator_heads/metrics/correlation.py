"""Pearson correlation and cosine similarity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError
from estimator_core.metrics import Mean, TotalsMetric, mean, same_shape, weigh
from estimator_heads.metrics.products import moment, moment_parts

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Pearson(TotalsMetric):
    """The correlation of two numbers, from their weighted first and second moments. It is exact at any offset."""

    weight: Array
    x: Array
    y: Array
    xx: Array
    yy: Array
    xy: Array

    def compute(self) -> float:
        """Returns the coefficient in [-1, 1], or NaN if one of the two is constant."""
        found = [moment(each) for each in (self.weight, self.x, self.y, self.xx, self.yy, self.xy)]
        moments = [each for each in found if each is not None]
        if len(moments) < len(found) or moments[0] == 0:
            return math.nan
        weight, x, y, xx, yy, xy = moments
        spread_x, spread_y = float(xx - x * x / weight), float(yy - y * y / weight)
        if not (spread_x > 0 and spread_y > 0):
            return math.nan
        return max(-1.0, min(1.0, float(xy - x * y / weight) / math.sqrt(spread_x * spread_y)))


def pearson_correlation(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None) -> Pearson:
    """Returns the linear correlation of labels and predictions.

    Args:
        labels: numbers [batch, ...].
        predictions: numbers of the same shape.
        weights: a scalar, [batch], [batch, 1] or the full shape.

    Raises:
        ArgumentError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> pearson_correlation(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])).compute()
        1.0
    """
    first, second = same_shape(labels, predictions, metric="pearson_correlation")
    each, _ = weigh(first.shape, weights, metric="pearson_correlation")
    w = each.astype(jnp.float32)
    x = jnp.where(w == 0, 0.0, first.astype(jnp.float32))
    y = jnp.where(w == 0, 0.0, second.astype(jnp.float32))
    return Pearson(
        weight=moment_parts(w),
        x=moment_parts(w, x),
        y=moment_parts(w, y),
        xx=moment_parts(w, x, x),
        yy=moment_parts(w, y, y),
        xy=moment_parts(w, x, y),
    )


def cosine_similarity(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None) -> Mean:
    """Returns the mean over examples of the cosine between two vectors. The cosine is 0 if a vector is 0.

    Args:
        labels: vectors [batch, ..., n].
        predictions: vectors of the same shape.
        weights: a scalar, [batch] or [batch, ...] without the last axis.

    Raises:
        ArgumentError: shapes do not match, or there is no axis of vectors.

    Example:
        >>> import numpy as np
        >>> cosine_similarity(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0]])).compute()
        1.0
    """
    a, b = jnp.asarray(labels, jnp.float32), jnp.asarray(predictions, jnp.float32)
    if a.shape != b.shape or a.ndim < 2:
        raise ArgumentError(
            f"cosine_similarity: it takes two arrays of vectors of one shape [batch, ..., n]; got {a.shape}, {b.shape}."
        )
    # The vectors are scaled first. Squares of long vectors then do not overflow, and squares of short ones do not
    # underflow.
    a, b = _scaled(a), _scaled(b)
    norms = jnp.linalg.norm(a, axis=-1) * jnp.linalg.norm(b, axis=-1)
    return mean(jnp.sum(a * b, axis=-1) / jnp.where(norms == 0, 1.0, norms), weights)


def _scaled(vectors: Array) -> Array:
    largest = jnp.max(jnp.abs(vectors), axis=-1, keepdims=True)
    return vectors / jnp.where(largest == 0, 1.0, largest)
