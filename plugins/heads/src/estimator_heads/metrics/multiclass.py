"""Precision, recall and F-beta of class ids: averaged over classes, or class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_heads.metrics.buckets import BucketMetric, divide, fill_buckets, flat_examples

if TYPE_CHECKING:
    from jax.typing import ArrayLike

Average = Literal["micro", "macro", "weighted", "none"]
ClassStatistic = Literal["precision", "recall", "f_beta"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class ConfusionMatrix(BucketMetric):
    """The weight of each pair of (label, prediction). `confusion_matrix` creates it."""

    n_classes: int = field(metadata={"static": True})

    def compute(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Returns float64 [classes, classes]. Rows are labels, and columns are predictions."""
        return self.counts().reshape(self.n_classes, self.n_classes)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class ClassScore(BucketMetric):
    """A score of each class from the confusion matrix, averaged by `average`."""

    n_classes: int = field(metadata={"static": True})
    statistic: ClassStatistic = field(metadata={"static": True})
    beta: float = field(metadata={"static": True})
    average: Average = field(metadata={"static": True})
    indices: tuple[int, ...] = field(metadata={"static": True})

    def compute(self) -> float | np.ndarray[Any, np.dtype[np.float64]]:
        """Returns the average as a float, or one value per class. A ratio of 0 / 0 counts as 0."""
        matrix = self.counts().reshape(self.n_classes, self.n_classes)
        chosen = list(self.indices)
        hits = np.diagonal(matrix)[chosen]
        predicted, actual = matrix.sum(axis=0)[chosen], matrix.sum(axis=1)[chosen]
        if self.average == "micro":
            return float(self._ratio(hits.sum(), predicted.sum(), actual.sum()))
        scores = self._ratio(hits, predicted, actual)
        if self.average == "none":
            return scores
        if self.average == "macro":
            return float(scores.mean())
        return float(divide((scores * actual).sum(), actual.sum()))

    def _ratio(self, hits: Any, predicted: Any, actual: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        if self.statistic == "precision":
            return divide(hits, predicted)
        if self.statistic == "recall":
            return divide(hits, actual)
        squared = self.beta**2
        return divide((1 + squared) * hits, squared * actual + predicted)


def confusion_matrix(
    labels: ArrayLike, predictions: ArrayLike, n_classes: int, weights: ArrayLike | None = None
) -> ConfusionMatrix:
    """Returns how often each class was predicted for each label.

    Args:
        labels: integer class ids [batch, ...]. An id outside [0, n_classes) makes every entry NaN.
        predictions: integer class ids of the same shape.
        n_classes: the number of classes.
        weights: a scalar, [batch], [batch, 1] or the full shape.

    Example:
        >>> import numpy as np
        >>> confusion_matrix(np.array([0, 1, 1]), np.array([0, 1, 0]), n_classes=2).compute()
        array([[1., 0.],
               [1., 1.]])
    """
    buckets = _pairs(labels, predictions, n_classes, weights, "confusion_matrix")
    return ConfusionMatrix(buckets=buckets, n_classes=n_classes)


def class_precision(
    labels: ArrayLike,
    predictions: ArrayLike,
    n_classes: int,
    weights: ArrayLike | None = None,
    *,
    average: Average = "macro",
    indices: Sequence[int] | None = None,
) -> ClassScore:
    """Returns the precision of class ids.

    Args:
        labels: integer class ids [batch, ...]. An id outside [0, n_classes) makes the value NaN.
        predictions: integer class ids of the same shape.
        n_classes: the number of classes.
        weights: a scalar, [batch], [batch, 1] or the full shape.
        average: "micro" (over all counts), "macro" (plain mean over classes), "weighted" (by the frequency of a class)
            or "none".
        indices: the classes to average or list. None: all classes.

    Raises:
        ArgumentError: the average is unknown, or an index is not a class.

    Example:
        >>> import numpy as np
        >>> class_precision(np.array([0, 1, 2]), np.array([0, 1, 1]), n_classes=3, average="none").compute()
        array([1. , 0.5, 0. ])
    """
    return _class_score(labels, predictions, n_classes, weights, "precision", 1.0, average, indices)


def class_recall(
    labels: ArrayLike,
    predictions: ArrayLike,
    n_classes: int,
    weights: ArrayLike | None = None,
    *,
    average: Average = "macro",
    indices: Sequence[int] | None = None,
) -> ClassScore:
    """Returns the recall of class ids. The arguments are those of `class_precision`."""
    return _class_score(labels, predictions, n_classes, weights, "recall", 1.0, average, indices)


def f_beta(
    labels: ArrayLike,
    predictions: ArrayLike,
    n_classes: int,
    weights: ArrayLike | None = None,
    *,
    beta: float = 1.0,
    average: Average = "macro",
    indices: Sequence[int] | None = None,
) -> ClassScore:
    """Returns F-beta of class ids, in which recall counts `beta` times.

    The other arguments are those of `class_precision`.

    Example:
        >>> import numpy as np
        >>> f_beta(np.array([0, 1, 1]), np.array([0, 1, 1]), n_classes=2, average="micro").compute()
        1.0
    """
    return _class_score(labels, predictions, n_classes, weights, "f_beta", beta, average, indices)


def _are_ids(values: Sequence[object]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def _class_score(
    labels: ArrayLike,
    predictions: ArrayLike,
    n_classes: int,
    weights: ArrayLike | None,
    statistic: ClassStatistic,
    beta: float,
    average: Average,
    indices: Sequence[int] | None,
) -> ClassScore:
    if isinstance(weights, list | tuple) and len(weights) != np.shape(labels)[0] and _are_ids(weights):
        raise ArgumentError(
            f"The fourth argument of a class metric is weights. Given: {weights!r}. tf_metrics has pos_indices there: "
            f'use indices={list(weights)!r}, and average="micro", which is its default.'
        )
    if average not in ("micro", "macro", "weighted", "none"):
        raise ArgumentError(f'average must be "micro", "macro", "weighted" or "none". Given: {average!r}.')
    chosen = tuple(range(n_classes)) if indices is None else tuple(int(index) for index in indices)
    if not chosen or any(not 0 <= index < n_classes for index in chosen):
        raise ArgumentError(f"indices must name classes in [0, {n_classes - 1}]. Given: {indices}.")
    return ClassScore(
        buckets=_pairs(labels, predictions, n_classes, weights, statistic),
        n_classes=n_classes,
        statistic=statistic,
        beta=beta,
        average=average,
        indices=chosen,
    )


def _pairs(labels: ArrayLike, predictions: ArrayLike, n_classes: int, weights: ArrayLike | None, metric: str) -> Any:
    examples = flat_examples(labels, predictions, weights, metric=metric)
    label, predicted = examples.labels, examples.predictions
    usable = (label >= 0) & (label < n_classes) & (predicted >= 0) & (predicted < n_classes)
    index = label.astype("int32") * n_classes + predicted.astype("int32")
    return fill_buckets(index, usable, n_classes * n_classes, examples.weights)
