"""The difference between predicted probabilities and observed frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import check_count
from estimator_core.metrics import TotalsMetric, bucket_totals, total_value
from estimator_heads.metrics.buckets import divide, flat_examples

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class CalibrationError(TotalsMetric):
    """Sums of weights, probabilities and outcomes in each bin, and in one more bin for values outside all bins.

    Args:
        weight: the sums of weights, a total [2, bins + 1].
        probability: the sums of probabilities, a total [2, bins + 1].
        outcome: the sums of outcomes, a total [2, bins + 1].
    """

    weight: Array
    probability: Array
    outcome: Array

    def compute(self) -> float:
        """Returns the mean over examples of the gap of their bin, or 0.0 if the total weight is 0."""
        weight, probability, outcome = self.bins()
        return float(divide(np.sum(np.abs(probability - outcome)), np.sum(weight)))

    def bins(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Returns the three sums in each bin, float64 [bins]. They are NaN if a probability is outside all bins."""
        sums = [total_value(column) for column in (self.weight, self.probability, self.outcome)]
        unusable = sums[0][-1] != 0
        weight, probability, outcome = (np.full(len(s) - 1, np.nan) if unusable else s[:-1] for s in sums)
        return weight, probability, outcome


def calibration_error(
    labels: ArrayLike, probabilities: ArrayLike, weights: ArrayLike | None = None, *, bins: int = 10
) -> CalibrationError:
    """Returns the expected calibration error.

    For several classes, pass `class_id == label` as labels and the probability of the predicted class as probabilities.

    Args:
        labels: 0 or 1 (or bool) [batch, ...].
        probabilities: in [0, 1], of the same shape. A score that is NaN or out of range makes the value NaN.
        weights: a scalar, [batch], [batch, 1] or the full shape.
        bins: number of equal bins over (0, 1].

    Raises:
        ArgumentError: there are no bins, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> round(calibration_error(np.array([1, 1, 0]), np.array([0.9, 0.9, 0.9])).compute(), 6)
        0.233333

    Source: Naeini et al., "Obtaining Well Calibrated Probabilities Using Bayesian Binning", 2015; Guo et al., 2017.
    """
    check_count("calibration_error: bins", bins)
    examples = flat_examples(labels, probabilities, weights, metric="calibration_error")
    p, y = examples.predictions.astype(jnp.float32), examples.labels.astype(jnp.float32)
    usable = (p >= 0) & (p <= 1) & ~jnp.isnan(y)
    bucket = jnp.maximum(jnp.ceil(jnp.where(usable, p, 0.0) * bins).astype(jnp.int32) - 1, 0)
    index = jnp.where(usable, bucket, bins)
    w = examples.weights.astype(jnp.float32)
    return CalibrationError(
        weight=bucket_totals(index, bins + 1, examples.weights),
        probability=bucket_totals(index, bins + 1, jnp.where(usable, w * p, 0.0)),
        outcome=bucket_totals(index, bins + 1, jnp.where(usable, w * y, 0.0)),
    )
