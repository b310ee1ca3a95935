"""The histogram of scores for metrics over many thresholds: AUC, precision at recall, calibration curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_heads.metrics.buckets import BucketMetric, divide, fill_buckets, flat_examples

if TYPE_CHECKING:
    from jax.typing import ArrayLike

    FloatArray = np.ndarray[Any, np.dtype[np.float64]]


class ThresholdCounts(NamedTuple):
    """Confusion counts at each threshold, float64 [thresholds], by ascending threshold."""

    true_positives: FloatArray
    false_positives: FloatArray
    true_negatives: FloatArray
    false_negatives: FloatArray

    @property
    def precision(self) -> FloatArray:
        """The precision, or 0 without positive predictions."""
        return divide(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> FloatArray:
        """The true positive rate, or 0 without positives."""
        return divide(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def false_positive_rate(self) -> FloatArray:
        """The false positive rate, or 0 without negatives."""
        return divide(self.false_positives, self.false_positives + self.true_negatives)

    @property
    def specificity(self) -> FloatArray:
        """The true negative rate, or 0 without negatives."""
        return divide(self.true_negatives, self.true_negatives + self.false_positives)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class ScoreHistogram(BucketMetric):
    """The weight of negatives and positives in each of `thresholds - 1` equal buckets of scores.

    Bucket k contains the scores in (k, k + 1] / (thresholds - 1), and the first bucket also 0. Therefore "score above
    threshold i" is "bucket at least i".
    """

    thresholds: int = field(metadata={"static": True})

    def at_thresholds(self) -> ThresholdCounts:
        """Returns the confusion counts at the thresholds i / (thresholds - 1).

        A score of 0 is above the first threshold, and no score is above the last one.
        """
        negatives, positives = self.counts().reshape(2, -1)

        def above(counts: FloatArray) -> FloatArray:
            return np.append(np.cumsum(counts[::-1])[::-1], 0.0)

        true_positives, false_positives = above(positives), above(negatives)
        return ThresholdCounts(
            true_positives,
            false_positives,
            true_negatives=negatives.sum() - false_positives,
            false_negatives=positives.sum() - true_positives,
        )


def score_buckets(
    labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None, thresholds: int, *, metric: str
) -> Any:
    """Returns the totals of a `ScoreHistogram`. A score that is NaN or outside [0, 1] is outside all buckets.

    Raises:
        ArgumentError: there are fewer than two thresholds, or shapes do not match.
    """
    if thresholds < 2:
        raise ArgumentError(f"{metric}: it takes at least 2 thresholds. Given: {thresholds}.")
    examples = flat_examples(labels, predictions, weights, metric=metric)
    scores = examples.predictions.astype(jnp.float32)
    usable = (scores >= 0) & (scores <= 1) & ~jnp.isnan(examples.labels.astype(jnp.float32))
    bucket = jnp.ceil(jnp.where(usable, scores, 0.0) * (thresholds - 1)).astype(jnp.int32) - 1
    index = (examples.labels != 0).astype(jnp.int32) * (thresholds - 1) + jnp.maximum(bucket, 0)
    return fill_buckets(index, usable, 2 * (thresholds - 1), examples.weights)
