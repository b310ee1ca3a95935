"""The mean of values, and accuracy as the mean of agreement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from estimator_core._metrics.base import TotalsMetric
from estimator_core._metrics.totals import total, total_value
from estimator_core._metrics.weighting import same_shape, weigh

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Mean(TotalsMetric):
    """A streaming weighted mean. `mean` and `accuracy` create it.

    Args:
        total: the total of `values * weights`.
        weight: the total of the weights, or the number of values without weights.
    """

    total: Array
    weight: Array

    def compute(self) -> float:
        """Returns the mean: 0.0 if the total weight is 0, NaN if it is infinite, as in tf.estimator."""
        weight = float(total_value(self.weight))
        value = float(total_value(self.total))
        if math.isinf(weight):
            return math.nan  # a share of an infinite weight, as in tf.estimator
        return value / weight if weight != 0 else 0.0


def mean(values: ArrayLike, weights: ArrayLike | None = None) -> Mean:
    """Returns the mean of all values of the evaluation: `sum(weights * values) / sum(weights)`.

    Args:
        values: an array of any shape; [batch, ...] if batches may be padded. A scalar counts once per batch.
        weights: a scalar, [batch], [batch, 1] or the shape of `values`. A value with weight 0 is ignored, even if it is
            not finite.

    Raises:
        ArgumentError: the shape of the weights does not fit the values.

    Example:
        >>> import numpy as np
        >>> import estimator_core.metrics as metrics
        >>> metrics.mean(np.array([1.0, 3.0])).merge(metrics.mean(np.array([5.0, 7.0]))).compute()
        4.0
        >>> metrics.mean(np.array([1.0, 3.0]), weights=np.array([1.0, 0.0])).compute()
        1.0
    """
    array = jnp.asarray(values)
    each, counted = weigh(array.shape, weights, metric="mean")
    if counted and array.dtype == jnp.bool_:
        return Mean(total=total(array & each), weight=total(each))
    return Mean(total=total(array, each), weight=total(each))


def accuracy(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None) -> Mean:
    """Returns the fraction of predictions that equal their label.

    Args:
        labels: an array of any shape and dtype; [batch, ...] if batches may be padded.
        predictions: an array of the same shape. One of the two may have an additional trailing axis of size 1.
        weights: a scalar, [batch], [batch, 1] or the shape of `labels`.

    Raises:
        ArgumentError: the shapes do not match.

    Example:
        >>> import numpy as np
        >>> import estimator_core.metrics as metrics
        >>> metrics.accuracy(labels=np.array([1, 2, 3]), predictions=np.array([1, 2, 0])).compute()
        0.6666666666666666
    """
    expected, predicted = same_shape(labels, predictions, metric="accuracy")
    return mean(expected == predicted, weights)
