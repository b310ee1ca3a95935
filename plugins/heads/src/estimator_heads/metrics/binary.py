"""Precision, recall, F-beta, specificity and accuracy of yes-or-no decisions at one threshold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import jax
import jax.numpy as jnp

from estimator_heads.metrics.buckets import BucketMetric, divide, fill_buckets, flat_examples

if TYPE_CHECKING:
    from jax.typing import ArrayLike

BinaryStatistic = Literal["precision", "recall", "specificity", "f_beta"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class BinaryScore(BucketMetric):
    """A ratio of the four confusion counts: true negatives, false positives, false negatives, true positives."""

    statistic: BinaryStatistic = field(metadata={"static": True})
    beta: float = field(default=1.0, metadata={"static": True})

    def compute(self) -> float:
        """Returns the ratio, or 0.0 if it is 0 / 0."""
        true_negatives, false_positives, false_negatives, true_positives = self.counts()
        if self.statistic == "specificity":
            return float(divide(true_negatives, true_negatives + false_positives))
        if self.statistic == "precision":
            return float(divide(true_positives, true_positives + false_positives))
        if self.statistic == "recall":
            return float(divide(true_positives, true_positives + false_negatives))
        squared = self.beta**2
        errors = squared * false_negatives + false_positives
        return float(divide((1 + squared) * true_positives, (1 + squared) * true_positives + errors))


def precision(
    labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None, *, threshold: float = 0.5
) -> BinaryScore:
    """Returns the fraction of positive predictions that are true positives.

    Args:
        labels: [batch, ...]. Anything except 0 is positive.
        predictions: scores, ids or booleans of the same shape. Values above `threshold` are positive. A NaN makes the
            value NaN.
        weights: a scalar, [batch], [batch, 1] or the full shape.
        threshold: the threshold of positive predictions.

    Raises:
        ArgumentError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> precision(np.array([1, 0, 1]), np.array([0.9, 0.8, 0.1])).compute()
        0.5
    """
    return _score(labels, predictions, weights, threshold, "precision")


def recall(
    labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None, *, threshold: float = 0.5
) -> BinaryScore:
    """Returns the fraction of positive labels that are true positives (sensitivity). See `precision` for the arguments.

    Example:
        >>> import numpy as np
        >>> recall(np.array([1, 1, 1, 1]), np.array([0.9, 0.8, 0.7, 0.1])).compute()
        0.75
    """
    return _score(labels, predictions, weights, threshold, "recall")


def specificity(
    labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None, *, threshold: float = 0.5
) -> BinaryScore:
    """Returns the fraction of negative labels that are true negatives. The arguments are those of `precision`."""
    return _score(labels, predictions, weights, threshold, "specificity")


def binary_f_beta(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    beta: float = 1.0,
    threshold: float = 0.5,
) -> BinaryScore:
    """Returns the harmonic mean of precision and recall, in which recall counts `beta` times.

    The arguments are those of `precision`.

    Example:
        >>> import numpy as np
        >>> binary_f_beta(np.array([1, 0, 1]), np.array([0.9, 0.8, 0.1])).compute()
        0.5
    """
    return _score(labels, predictions, weights, threshold, "f_beta", beta)


def _score(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None,
    threshold: float,
    statistic: BinaryStatistic,
    beta: float = 1.0,
) -> BinaryScore:
    name = "binary_f_beta" if statistic == "f_beta" else statistic
    examples = flat_examples(labels, predictions, weights, metric=name)
    scores = examples.predictions.astype(jnp.float32)
    index = 2 * (examples.labels != 0).astype(jnp.int32) + (scores > threshold).astype(jnp.int32)
    usable = ~(jnp.isnan(scores) | jnp.isnan(examples.labels.astype(jnp.float32)))
    buckets = fill_buckets(index, usable, 4, examples.weights)
    return BinaryScore(buckets=buckets, statistic=statistic, beta=beta)
