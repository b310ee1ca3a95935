"""The best value of one rate at a lower bound of another rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import jax
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_heads.metrics.thresholds import ScoreHistogram, score_buckets

if TYPE_CHECKING:
    from jax.typing import ArrayLike

Rate = Literal["precision", "recall", "specificity"]
Choice = Literal["best", "nearest"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class OperatingPoint(ScoreHistogram):
    """The largest `wanted` rate for which `bounded` is at least `at_least`.

    With "nearest", it is the rate at the `bounded` that is nearest to `at_least`.
    """

    wanted: Rate = field(metadata={"static": True})
    bounded: Rate = field(metadata={"static": True})
    at_least: float = field(metadata={"static": True})
    choose: Choice = field(default="best", metadata={"static": True})

    def compute(self) -> float:
        """Returns the rate: 0.0 if no threshold meets the bound (except with "nearest"), NaN if a score is invalid."""
        counts = self.at_thresholds()
        wanted, bounded = getattr(counts, self.wanted), getattr(counts, self.bounded)
        if np.isnan(wanted).any():
            return float("nan")
        if self.choose == "nearest":
            away = np.abs(bounded.astype(np.float32) - np.float32(self.at_least))  # float32 as in TensorFlow for ties
            nearest = np.flatnonzero(away == away.min())
            return float(wanted[nearest[0 if self.bounded == "specificity" else -1]])
        meets = bounded >= self.at_least
        return float(wanted[meets].max()) if meets.any() else 0.0


def precision_at_recall(
    labels: ArrayLike,
    predictions: ArrayLike,
    recall: float,
    weights: ArrayLike | None = None,
    *,
    thresholds: int = 200,
) -> OperatingPoint:
    """Returns the best precision with a recall of at least `recall`.

    Args:
        labels: [batch, ...]. Anything except 0 is positive.
        predictions: scores in [0, 1] of the same shape. A score that is NaN or out of range makes the value NaN.
        recall: the bound, in [0, 1].
        weights: a scalar, [batch], [batch, 1] or the full shape.
        thresholds: the number of equally spaced thresholds.

    Raises:
        ArgumentError: the bound is outside [0, 1], or shapes do not match.

    Example:
        >>> import numpy as np
        >>> precision_at_recall(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]), recall=0.5).compute()
        1.0

    Source: `tf.keras.metrics.PrecisionAtRecall`.
    """
    return _point(labels, predictions, weights, thresholds, "precision", "recall", recall)


def recall_at_precision(
    labels: ArrayLike,
    predictions: ArrayLike,
    precision: float,
    weights: ArrayLike | None = None,
    *,
    thresholds: int = 200,
) -> OperatingPoint:
    """Returns the best recall with a precision of at least `precision`.

    The arguments are those of `precision_at_recall`.
    """
    return _point(labels, predictions, weights, thresholds, "recall", "precision", precision)


def sensitivity_at_specificity(
    labels: ArrayLike,
    predictions: ArrayLike,
    specificity: float,
    weights: ArrayLike | None = None,
    *,
    thresholds: int = 200,
    choose: Choice = "best",
) -> OperatingPoint:
    """Returns the best recall with a specificity of at least `specificity`.

    The arguments are those of `precision_at_recall`.

    With choose="nearest" it is `tf.compat.v1.metrics.sensitivity_at_specificity`: the rate at the specificity nearest
    to the requested one, which may be lower. Keras uses the best rate.
    """
    return _point(labels, predictions, weights, thresholds, "recall", "specificity", specificity, choose)


def specificity_at_sensitivity(
    labels: ArrayLike,
    predictions: ArrayLike,
    sensitivity: float,
    weights: ArrayLike | None = None,
    *,
    thresholds: int = 200,
    choose: Choice = "best",
) -> OperatingPoint:
    """Returns the best specificity with a recall of at least `sensitivity`.

    The arguments are those of `precision_at_recall`.

    With choose="nearest" it is `tf.compat.v1.metrics.specificity_at_sensitivity`: the rate at the sensitivity nearest
    to the requested one, which may be lower. Keras uses the best rate.
    """
    return _point(labels, predictions, weights, thresholds, "specificity", "recall", sensitivity, choose)


def _point(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None,
    thresholds: int,
    wanted: Rate,
    bounded: Rate,
    at_least: float,
    choose: Choice = "best",
) -> OperatingPoint:
    if not 0.0 <= at_least <= 1.0:
        raise ArgumentError(f"{wanted} at {bounded}: the {bounded} must be in [0, 1]. Given: {at_least}.")
    if choose not in ("best", "nearest"):
        raise ArgumentError(f'choose must be "best" or "nearest". Given: {choose!r}.')
    buckets = score_buckets(labels, predictions, weights, thresholds, metric=f"{wanted} at {bounded}")
    return OperatingPoint(
        buckets=buckets,
        thresholds=thresholds,
        wanted=wanted,
        bounded=bounded,
        at_least=float(at_least),
        choose=choose,
    )
