"""The data of the plots of a head. They are metrics that accumulate on the device like all others."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from estimator_core.metrics import Metric, TotalsMetric
from estimator_heads.metrics.auc import auc
from estimator_heads.metrics.calibration import calibration_error
from estimator_heads.metrics.multiclass import confusion_matrix

if TYPE_CHECKING:
    from collections.abc import Mapping


class Collected:
    """Passes the metrics of an evaluation to the hook that draws them.

    The metrics are computed at the end of the evaluation, and drawn immediately after that.

    Args:
        head: the name of the head, or None.
        names: the names of the classes.
    """

    def __init__(self, head: str | None, names: tuple[str, ...]) -> None:
        self.head = head
        self.names = names
        self.parts: Mapping[str, Any] | None = None


@cache
def collected(head: str | None, names: tuple[str, ...]) -> Collected:
    """Returns the only `Collected` of a head.

    model_fn may create the head again in every trace, and must find the same object.
    """
    return Collected(head, names)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class PlottedMetrics(TotalsMetric):
    """The calibration error, and further data for the plots."""

    parts: dict[str, Metric]
    collected: Collected = field(metadata={"static": True})

    def compute(self) -> float:
        """Returns the calibration error, and passes all parts to the hook."""
        self.collected.parts = self.parts
        return float(self.parts["calibration"].compute())


def plotted_metrics(
    into: Collected, *, labels: jax.Array, scores: jax.Array, weights: jax.Array | None
) -> PlottedMetrics:
    """Returns the metrics that the plots of a batch show.

    Args:
        into: the object that receives the metrics of the head.
        labels: class ids [D0, ..., DN, 1]. For two classes, numbers in [0, 1].
        scores: the probability of the second class [D0, ..., DN, 1], or of each class [D0, ..., DN, classes].
        weights: one weight per example, or None.
    """
    if len(into.names) == 2:
        called, actual = (scores > 0.5).astype(jnp.int32), (labels > 0.5).astype(jnp.int32)
        parts: dict[str, Metric] = {
            "roc": auc(labels, scores, weights),
            "calibration": calibration_error(labels, scores, weights),
        }
    else:
        called, actual = jnp.argmax(scores, axis=-1, keepdims=True), labels.astype(jnp.int32)
        right = (called == actual).astype(jnp.float32)
        parts = {"calibration": calibration_error(right, jnp.max(scores, axis=-1, keepdims=True), weights)}
    parts["confusion_matrix"] = confusion_matrix(actual, called, len(into.names), weights)
    return PlottedMetrics(parts=parts, collected=into)
