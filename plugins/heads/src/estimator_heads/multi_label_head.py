"""The head for several independent classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ArgumentError, check_count, is_integer
from estimator_core.metrics import accuracy, mean
from estimator_heads.checks import (
    as_numbers,
    check_label_range,
    check_labels,
    check_logits,
    check_prediction_keys,
    check_thresholds,
)
from estimator_heads.classification import (
    PLAIN_LOSS,
    all_class_ids,
    check_options,
    class_names,
    classification_outputs,
)
from estimator_heads.data.label_sets import LabelSets
from estimator_heads.keys import MetricKeys, PredictionKeys
from estimator_heads.losses import sigmoid_cross_entropy
from estimator_heads.metrics.auc import auc
from estimator_heads.metrics.binary import precision, recall
from estimator_heads.per_example_head import Examples, PerExampleHead
from estimator_heads.reduction import Reduction
from estimator_heads.transforms import ClassNames, MultiHotLabels
from estimator_heads.vocabulary import Vocabulary, are_strings

if TYPE_CHECKING:
    from estimator_core.export import ExportOutput
    from estimator_core.inputs import HostTransform
    from estimator_core.metrics import Metric
    from estimator_heads.data.rule import DataRule
    from estimator_heads.loss_function import LossFn
    from estimator_heads.losses import LossOptions

_KEYS = (PredictionKeys.LOGITS, PredictionKeys.PROBABILITIES, PredictionKeys.CLASSES)


class MultiLabelHead(PerExampleHead):
    """Predicts any number of classes per example, each with the sigmoid of its logit.

    The loss is the mean over classes.

    Predictions: `logits`, `probabilities`, and `classes` [batch, n_classes]. `classes` lists the ids of all classes,
    which the host replaces by names.

    Args:
        n_classes: the number of classes, above 1.
        weight_column: the name of the weight feature ([D0, ..., DN] or [D0, ..., DN, 1]), or a numeric column.
        thresholds: numbers in (0, 1). Each adds accuracy, precision and recall at this threshold.
        label_vocabulary: the label strings, `n_classes` of them, for `label_transforms`.
        loss_reduction: one of `Reduction`.
        loss_fn: a function of (labels, logits[, features, loss_reduction]) that returns losses [D0, ..., DN, 1].
        classes_for_class_based_metrics: ids or vocabulary names of classes for which separate metrics are computed.
        name: the suffix of metric and summary keys.
        loss_options: the smoothing, focal exponent and (negative, positive) class weights of the cross entropy.

    Raises:
        ArgumentError: an argument is outside its range.

    Example:
        >>> import numpy as np
        >>> head = MultiLabelHead(2)
        >>> labels, logits = np.array([[1, 0], [1, 1]]), np.array([[-1.0, 1.0], [-1.5, 1.5]])
        >>> round(float(head.loss(labels, logits)), 4)
        1.1323

    Source: `tf.estimator.MultiLabelHead`. Its SparseTensor labels are lists of labels per example here.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Iterable[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: LossFn | None = None,
        classes_for_class_based_metrics: Sequence[int] | Sequence[str] | None = None,
        name: str | None = None,
        *,
        loss_options: LossOptions = PLAIN_LOSS,
    ) -> None:
        if not is_integer(n_classes) or n_classes < 2:
            raise ArgumentError(f"n_classes must be > 1 for multi-label classification. Given: {n_classes}")
        check_count("n_classes", n_classes, least=2)  # refuses a number of more than 64 bits
        super().__init__(
            name=name,
            logits_dimension=n_classes,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
            loss_fn=loss_fn,
        )
        self._thresholds = check_thresholds(thresholds)
        self._vocabulary = None if label_vocabulary is None else Vocabulary(label_vocabulary)
        if self._vocabulary is not None and len(self._vocabulary) != n_classes:
            raise ArgumentError(
                f"Length of label_vocabulary must be n_classes ({n_classes}). Given: {len(self._vocabulary)}"
            )
        self._options = check_options(loss_options, loss_fn, 2)
        self._own_metrics = _named_classes(classes_for_class_based_metrics, self._vocabulary, self.logits_dimension)

    def process_labels(self, labels: Any, logits: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """Returns the labels as 0 and 1 [D0, ..., DN, n_classes]. Concrete lists of strings or ids are converted."""
        if labels is not None and are_strings(labels):
            transform = MultiHotLabels(
                self.logits_dimension, None if self._vocabulary is None else self._vocabulary.names
            )
            labels = transform.apply({"labels": np.asarray(labels)})["labels"]
        valid = None
        if labels is not None:
            message = "labels must be an integer indicator Tensor with values in [0, 1]"
            valid = check_label_range(as_numbers(labels), 2, message)
        return check_labels(labels, logits, self.logits_dimension), valid

    def example_loss(self, labels: jax.Array, logits: jax.Array) -> jax.Array:
        """Returns the mean over classes of the sigmoid cross entropy."""
        losses = sigmoid_cross_entropy(labels.astype(jnp.float32), logits, self._options)
        return jnp.mean(losses, axis=-1, keepdims=True)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions by key. "classes" are ids, which the host replaces by names.

        Raises:
            ArgumentError: a key is unknown.
        """
        wanted = check_prediction_keys(keys, _KEYS)
        x = check_logits(logits, self.logits_dimension)
        found = {
            PredictionKeys.LOGITS: x,
            PredictionKeys.PROBABILITIES: jax.nn.sigmoid(x),
            PredictionKeys.CLASSES: all_class_ids(x, self.logits_dimension),
        }
        return {key: found[key] for key in wanted}

    def task_metrics(self, examples: Examples) -> dict[str, Metric]:
        """Returns areas under curves over all classes, scores at thresholds, and metrics of single classes."""
        labels, weights = examples.labels, examples.weights
        probabilities = jax.nn.sigmoid(examples.logits)
        found: dict[str, Metric] = {
            MetricKeys.AUC: auc(labels, probabilities, weights),
            MetricKeys.AUC_PR: auc(labels, probabilities, weights, curve="PR"),
        }
        for threshold in self._thresholds:
            called = (probabilities > threshold).astype(labels.dtype)
            found[MetricKeys.ACCURACY_AT_THRESHOLD % threshold] = accuracy(labels, called, weights)
            found[MetricKeys.PRECISION_AT_THRESHOLD % threshold] = precision(
                labels, probabilities, weights, threshold=threshold
            )
            found[MetricKeys.RECALL_AT_THRESHOLD % threshold] = recall(
                labels, probabilities, weights, threshold=threshold
            )
        for class_id, suffix in self._own_metrics:
            label, probability = labels[..., class_id, None], probabilities[..., class_id, None]
            found[f"probability_mean/{suffix}"] = mean(probability, weights)
            found[f"{MetricKeys.AUC}/{suffix}"] = auc(label, probability, weights)
            found[f"{MetricKeys.AUC_PR}/{suffix}"] = auc(label, probability, weights, curve="PR")
        return found

    def export_outputs(self, predictions: Mapping[Any, jax.Array]) -> dict[str, ExportOutput]:
        """Returns classification as the default signature, and all predictions."""
        return classification_outputs(predictions, class_names(self._vocabulary, self.logits_dimension))

    def prediction_transforms(self, head: str | None = None) -> tuple[HostTransform, ...]:
        """Returns the transform that adds names to `classes`."""
        names = class_names(self._vocabulary, self.logits_dimension)
        return (ClassNames(names, [PredictionKeys.CLASSES], head),)

    def label_transforms(self, feature: str = "labels") -> tuple[HostTransform, ...]:
        """Returns the transform that converts lists of label strings to multi-hot labels.

        Without a vocabulary, it converts lists of ids.
        """
        names = None if self._vocabulary is None else self._vocabulary.names
        return (MultiHotLabels(self.logits_dimension, names, feature),)

    def label_rules(self) -> dict[str, DataRule]:
        """Returns the rule of any number of classes per example."""
        names = None if self._vocabulary is None else self._vocabulary.names
        return {"": LabelSets(n_classes=self.logits_dimension, names=names)}


def _named_classes(
    classes: Sequence[int] | Sequence[str] | None, vocabulary: Vocabulary | None, n_classes: int
) -> tuple[tuple[int, str], ...]:
    """Returns the classes with separate metrics, and the suffixes of their keys: "class3", or a vocabulary name."""
    if not classes:
        return ()
    if isinstance(classes[0], str):
        if vocabulary is None:
            raise ArgumentError(
                "label_vocabulary must be provided when classes_for_class_based_metrics are strings. "
                f"Given: {classes!r}."
            )
        unknown = [name for name in classes if name not in vocabulary.names]
        if unknown:
            raise ArgumentError(f"classes_for_class_based_metrics: {unknown[0]!r} is not in list of labels.")
        ids = [vocabulary.names.index(str(name)) for name in classes]
    else:
        ids = [int(class_id) for class_id in classes]
    for class_id in ids:
        if not 0 <= class_id < n_classes:
            raise ArgumentError(
                f"All classes_for_class_based_metrics must be in range [0, {n_classes - 1}]. Given: {class_id}"
            )
    return tuple(
        (class_id, f"class{class_id}" if vocabulary is None else vocabulary.names[class_id]) for class_id in ids
    )
