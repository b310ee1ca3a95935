"""The area under the ROC and the precision-recall curve, from 200 thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import jax
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_heads.metrics.buckets import divide
from estimator_heads.metrics.thresholds import ScoreHistogram, ThresholdCounts, score_buckets

if TYPE_CHECKING:
    from jax.typing import ArrayLike

Curve = Literal["ROC", "PR"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Auc(ScoreHistogram):
    """An area under a curve. `auc` creates it."""

    curve: Curve = field(metadata={"static": True})

    def compute(self) -> float:
        """Returns the area, in [0, 1]. It is 0.0 for the ROC of a single class."""
        counts = self.at_thresholds()
        if self.curve == "PR":
            return _interpolated_pr_area(counts)
        x, y = counts.false_positive_rate, counts.recall
        return float(np.sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2.0))


def auc(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    curve: Curve = "ROC",
    thresholds: int = 200,
) -> Auc:
    """Returns the area under a curve, approximated with equally spaced thresholds as in tf.estimator.

    Scores in the same bucket of width 1 / 199 count as ties, so the area is too low for models whose scores are close
    together. `exact_auc` has no buckets.

    Args:
        labels: [batch, ...]. Anything except 0 is positive.
        predictions: scores in [0, 1] of the same shape. A score that is NaN or out of range makes the value NaN.
        weights: a scalar, [batch], [batch, 1] or the full shape.
        curve: "ROC", or "PR" with the interpolation of Davis and Goadrich.
        thresholds: the number of thresholds, at least 2.

    Raises:
        ArgumentError: the curve is unknown, there are too few thresholds, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> labels, scores = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])
        >>> auc(labels, scores).compute()
        0.75
        >>> round(auc(labels, scores, curve="PR").compute(), 7)
        0.7972674

    Source: `tf.keras.metrics.AUC`; Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves",
        2006.
    """
    if curve not in ("ROC", "PR"):
        raise ArgumentError(f'auc: curve must be "ROC" or "PR". Given: {curve!r}.')
    buckets = score_buckets(labels, predictions, weights, thresholds, metric="auc")
    return Auc(buckets=buckets, thresholds=thresholds, curve=curve)


def _interpolated_pr_area(counts: ThresholdCounts) -> float:
    """Returns the area if counts change linearly between two thresholds, and precision is computed from the counts."""
    hits, called = counts.true_positives, counts.true_positives + counts.false_positives
    slope = divide(hits[:-1] - hits[1:], np.maximum(called[:-1] - called[1:], 0.0))
    intercept = hits[1:] - slope * called[1:]
    both = (called[:-1] > 0) & (called[1:] > 0)
    ratio = np.where(both, divide(called[:-1], np.maximum(called[1:], 0.0)), 1.0)
    growth = slope * (hits[:-1] - hits[1:] + intercept * np.log(ratio))
    return float(np.sum(divide(growth, np.maximum(hits[1:] + counts.false_negatives[1:], 0.0))))
