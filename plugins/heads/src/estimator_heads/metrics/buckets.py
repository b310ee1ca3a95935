"""Metrics that are counts of examples in buckets: confusion counts, histograms of scores, confusion matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.metrics import TotalsMetric, bucket_totals, same_shape, total_value, weigh

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class BucketMetric(TotalsMetric):
    """Base of metrics with one total a bucket, and one for what fits none: a NaN score, a class id out of range.

    Args:
        buckets: a total [2, buckets + 1].
    """

    buckets: Array

    def counts(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The weight in each bucket; all NaN if anything with a weight fitted none."""
        values = total_value(self.buckets)
        return values[:-1] if values[-1] == 0 else np.full(len(values) - 1, np.nan)


class Examples(NamedTuple):
    """Labels, predictions and weights in one row each; the weights are bool where they are counts."""

    labels: Array
    predictions: Array
    weights: Array


def flat_examples(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None, *, metric: str) -> Examples:
    """Checks and flattens what a metric of single numbers gets; padding becomes weight 0."""
    expected, predicted = same_shape(labels, predictions, metric=metric)
    each, _ = weigh(expected.shape, weights, metric=metric)
    return Examples(expected.ravel(), predicted.ravel(), each.ravel())


def fill_buckets(index: Array, usable: Array, size: int, weights: Array) -> Array:
    """The totals of a `BucketMetric`: `index` in [0, size) where `usable`, the extra bucket elsewhere."""
    return bucket_totals(jnp.where(usable, index, size), size + 1, weights)


def divide(numerator: Any, denominator: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numerator / denominator in float64, 0 where the denominator is 0."""
    top, bottom = np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    return np.divide(top, bottom, out=np.zeros(np.broadcast(top, bottom).shape), where=bottom != 0)


def flat_rows(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None, *, metric: str) -> Examples:
    """As `flat_examples`, with the batch kept as the leading axis: what `on_host` takes."""
    expected, predicted = same_shape(labels, predictions, metric=metric)
    each, _ = weigh(expected.shape, weights, metric=metric)
    rows = (expected.shape[0], -1) if expected.ndim else (1, 1)
    return Examples(expected.reshape(rows), predicted.reshape(rows), each.reshape(rows))
