"""Errors of numbers: mean squared, root mean squared, mean absolute, and the coefficient of determination."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from estimator_core.metrics import Mean, TotalsMetric, mean, same_shape, total, total_value, weigh
from estimator_heads.metrics.products import moment, moment_parts, product_total

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class RootMean(Mean):
    """The square root of a mean."""

    def compute(self) -> float:
        """Returns the root, or 0.0 if the total weight is 0."""
        return math.sqrt(super().compute())


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class RSquared(TotalsMetric):
    """1 - residual / variance, from the weighted sums of y, y**2 and (y - prediction)**2.

    It is exact at any offset of y.
    """

    weight: Array
    label: Array
    label_squared: Array
    residual: Array

    def compute(self) -> float:
        """Returns the coefficient. For a constant label, it is 1.0 for perfect predictions and 0.0 for others."""
        weight = float(total_value(self.weight))
        if weight == 0:
            return 0.0
        label, squared = moment(self.label), moment(self.label_squared)
        residual = float(total_value(self.residual))
        if label is None or squared is None or not math.isfinite(residual):
            return math.nan
        spread = float(squared - label * label / Fraction(weight))
        if not spread > 0:
            return 1.0 if residual == 0 else 0.0
        return 1.0 - residual / spread


def mean_squared_error(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None) -> Mean:
    """Returns the mean of `(labels - predictions)**2`.

    Args:
        labels: numbers [batch, ...].
        predictions: numbers of the same shape.
        weights: a scalar, [batch], [batch, 1] or the full shape.

    Raises:
        ArgumentError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> mean_squared_error(np.array([1.0, 2.0]), np.array([3.0, 2.0])).compute()
        2.0
    """
    y, predicted = _floats(labels, predictions, "mean_squared_error")
    return mean((y - predicted) ** 2, weights)


def root_mean_squared_error(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None) -> RootMean:
    """Returns the square root of the mean squared error. The arguments are those of `mean_squared_error`."""
    squared = mean_squared_error(labels, predictions, weights)
    return RootMean(total=squared.total, weight=squared.weight)


def mean_absolute_error(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None) -> Mean:
    """Returns the mean of `|labels - predictions|`. The arguments are those of `mean_squared_error`."""
    y, predicted = _floats(labels, predictions, "mean_absolute_error")
    return mean(jnp.abs(y - predicted), weights)


def r_squared(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None) -> RSquared:
    """Returns the fraction of the variance of the labels that the predictions explain, over all outputs together.

    The arguments are those of `mean_squared_error`.

    Example:
        >>> import numpy as np
        >>> r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])).compute()
        0.5
    """
    y, predicted = _floats(labels, predictions, "r_squared")
    each, counted = weigh(y.shape, weights, metric="r_squared")
    w = each.astype(jnp.float32)
    y, predicted = jnp.where(w == 0, 0.0, y), jnp.where(w == 0, 0.0, predicted)
    return RSquared(
        weight=total(each) if counted else total(w),
        label=moment_parts(w, y),
        label_squared=moment_parts(w, y, y),
        residual=product_total(w, y - predicted, y - predicted),
    )


def _floats(labels: ArrayLike, predictions: ArrayLike, metric: str) -> tuple[Array, Array]:
    y, predicted = same_shape(labels, predictions, metric=metric)
    return y.astype(jnp.float32), predicted.astype(jnp.float32)
