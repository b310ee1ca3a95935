"""The exact area under a curve, computed on the host from all scores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.metrics import HostMetric, on_host
from estimator_heads.metrics.buckets import divide, flat_rows

if TYPE_CHECKING:
    from jax.typing import ArrayLike

    from estimator_heads.metrics.auc import Curve


def exact_auc(
    labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None, *, curve: Curve = "ROC"
) -> HostMetric:
    """Returns the area under a curve that uses every distinct score as a threshold.

    Args:
        labels: [batch, ...]. Anything except 0 is positive.
        predictions: scores of the same shape, of any range. A NaN with a weight makes the value NaN.
        weights: a scalar, [batch], [batch, 1] or the full shape.
        curve: "ROC" is the fraction of pairs in the right order, with ties counting half. "PR" is the average
            precision.

    Returns:
        A metric of whole arrays, which keeps all scores until the end. Like `auc`, it is 0.0 for the ROC of a single
        class.

    Raises:
        ArgumentError: the curve is unknown, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> exact_auc(np.array([0, 0, 1, 1]), np.array([0.100, 0.101, 0.102, 0.103])).compute()
        1.0
    """
    if curve not in ("ROC", "PR"):
        raise ArgumentError(f'exact_auc: curve must be "ROC" or "PR". Given: {curve!r}.')
    rows = flat_rows(labels, predictions, weights, metric="exact_auc")
    return on_host(
        partial(_area, curve=curve),
        positive=jnp.where(jnp.isnan(rows.labels.astype(jnp.float32)), -1, (rows.labels != 0).astype(jnp.int32)),
        scores=rows.predictions,
        weights=rows.weights,
    )


def _area(
    positive: np.ndarray[Any, Any], scores: np.ndarray[Any, Any], weights: np.ndarray[Any, Any], *, curve: Curve
) -> float:
    each = weights.ravel().astype(np.float64)
    kept = each != 0
    label, score, weight = positive.ravel()[kept], scores.ravel()[kept].astype(np.float64), each[kept]
    if np.isnan(score).any() or (label < 0).any():
        return float("nan")
    order = np.argsort(-score, kind="stable")
    label, score, weight = label[order], score[order], weight[order]
    last_of_ties = np.append(np.flatnonzero(np.diff(score)), len(score) - 1) if len(score) else np.zeros(0, int)
    hits = np.append(0.0, np.cumsum(weight * label)[last_of_ties])
    misses = np.append(0.0, np.cumsum(weight * (1 - label))[last_of_ties])
    if curve == "PR":
        precision = divide(hits, hits + misses)
        return float(divide(np.sum(np.diff(hits) * precision[1:]), hits[-1]))
    return float(divide(np.sum(np.diff(misses) * (hits[1:] + hits[:-1]) / 2.0), hits[-1] * misses[-1]))
