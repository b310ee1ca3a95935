"""Metrics that count examples in buckets: confusion counts, histograms of scores, confusion matrices."""

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
    """Base class of metrics with one total per bucket, and one total for values outside all buckets.

    A NaN score and a class id out of range are outside all buckets.

    Args:
        buckets: the totals [2, buckets + 1].
    """

    buckets: Array

    def counts(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Returns the weight in each bucket. All are NaN if a value with a weight is outside all buckets."""
        values = total_value(self.buckets)
        return values[:-1] if values[-1] == 0 else np.full(len(values) - 1, np.nan)


class Examples(NamedTuple):
    """Flattened labels, predictions and weights. The weights are bool if they are counts."""

    labels: Array
    predictions: Array
    weights: Array


def flat_examples(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None, *, metric: str) -> Examples:
    """Checks and flattens the arguments of a metric of single numbers. Padding gets the weight 0."""
    expected, predicted = same_shape(labels, predictions, metric=metric)
    each, _ = weigh(expected.shape, weights, metric=metric)
    return Examples(expected.ravel(), predicted.ravel(), each.ravel())


def fill_buckets(index: Array, usable: Array, size: int, weights: Array) -> Array:
    """Returns the totals of a `BucketMetric`: `index` in [0, size) if `usable`, otherwise the extra bucket."""
    return bucket_totals(jnp.where(usable, index, size), size + 1, weights)


def divide(numerator: Any, denominator: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns numerator / denominator in float64, or 0 if the denominator is 0."""
    top, bottom = np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    return np.divide(top, bottom, out=np.zeros(np.broadcast(top, bottom).shape), where=bottom != 0)


def flat_rows(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None, *, metric: str) -> Examples:
    """Returns the same as `flat_examples`, but the batch remains the leading axis, as `on_host` requires."""
    expected, predicted = same_shape(labels, predictions, metric=metric)
    each, _ = weigh(expected.shape, weights, metric=metric)
    rows = (expected.shape[0], -1) if expected.ndim else (1, 1)
    return Examples(expected.reshape(rows), predicted.reshape(rows), each.reshape(rows))
