"""The metrics for the curves of the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.metrics import TotalsMetric, bucket_totals, total_value, weigh

if TYPE_CHECKING:
    from collections.abc import Mapping

SCORES, CONFUSION = "report/scores", "report/confusion"
BUCKETS = 100


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Counts(TotalsMetric):
    """The counts of a table."""

    counts: jax.Array
    shape: tuple[int, int] = field(metadata={"static": True})

    def compute(self) -> np.ndarray:
        """Returns the table, float64."""
        return total_value(self.counts).reshape(self.shape)


def report_metrics(labels: Any, predictions: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the metrics for the curves of the page, for `ec.add_metrics(estimator, report_metrics)`.

    Args:
        labels: the class ids, [batch] or [batch, 1].
        predictions: a dict with "probabilities" [batch, classes], as classification heads return it.

    Returns:
        "report/confusion": [classes, classes], rows are labels. "report/scores": [2, 100], the number of examples with
        the answers no and yes that have a score in each of 100 equal buckets. With two classes, the score is the
        probability of class 1. With more classes, it is the probability of the predicted class, and the answer is
        whether that class is right.

    Raises:
        ArgumentError: the predictions have no "probabilities".

    Example:
        >>> found = report_metrics(np.array([1, 0]), {"probabilities": np.array([[0.2, 0.8], [0.4, 0.6]])})
        >>> found["report/confusion"].compute().tolist()
        [[0.0, 1.0], [0.0, 1.0]]
    """
    if "probabilities" not in predictions:
        raise ArgumentError(
            f"report_metrics needs the prediction 'probabilities', [batch, classes]; the model returns "
            f"{sorted(map(str, predictions))}."
        )
    probabilities = jnp.asarray(predictions["probabilities"], jnp.float32)
    probabilities = probabilities.reshape(-1, probabilities.shape[-1])
    classes = probabilities.shape[-1]
    label = jnp.asarray(labels).reshape(-1).astype(jnp.int32)
    counted, _ = weigh(label.shape, None, metric="report_metrics")
    called = jnp.argmax(probabilities, axis=-1).astype(jnp.int32)
    cells = jnp.where((label >= 0) & (label < classes), label * classes + called, -1)
    score = probabilities[:, 1] if classes == 2 else jnp.max(probabilities, axis=-1)
    answer = label == 1 if classes == 2 else label == called
    bucket = jnp.clip((score * BUCKETS).astype(jnp.int32), 0, BUCKETS - 1)
    return {
        CONFUSION: Counts(counts=bucket_totals(cells, classes * classes, counted), shape=(classes, classes)),
        SCORES: Counts(
            counts=bucket_totals(answer.astype(jnp.int32) * BUCKETS + bucket, 2 * BUCKETS, counted), shape=(2, BUCKETS)
        ),
    }
