"""The head for two classes."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError
from estimator_core.export import RegressionOutput
from estimator_core.metrics import accuracy, mean
from estimator_heads.checks import (
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
from estimator_heads.data.class_labels import ClassLabels
from estimator_heads.keys import REGRESS_SERVING_KEY, MetricKeys, PredictionKeys
from estimator_heads.losses import sigmoid_cross_entropy
from estimator_heads.metrics.auc import auc
from estimator_heads.metrics.baseline import accuracy_baseline
from estimator_heads.metrics.binary import precision, recall
from estimator_heads.per_example_head import Examples, PerExampleHead
from estimator_heads.plots.collected import collected, plotted_metrics
from estimator_heads.plots.hook import PlotHook
from estimator_heads.reduction import Reduction
from estimator_heads.transforms import ClassNames, LabelIds
from estimator_heads.vocabulary import Vocabulary, are_strings

if TYPE_CHECKING:
    from estimator_core.export import ExportOutput
    from estimator_core.hooks import Hook
    from estimator_core.inputs import HostTransform
    from estimator_core.metrics import Metric
    from estimator_heads.data.rule import DataRule
    from estimator_heads.loss_function import LossFn
    from estimator_heads.losses import LossOptions

_KEYS = (
    PredictionKeys.LOGITS,
    PredictionKeys.LOGISTIC,
    PredictionKeys.PROBABILITIES,
    PredictionKeys.CLASS_IDS,
    PredictionKeys.CLASSES,
    PredictionKeys.ALL_CLASS_IDS,
    PredictionKeys.ALL_CLASSES,
)


class BinaryClassHead(PerExampleHead):
    """Two classes, predicted by the sigmoid of one logit.

    Predictions: `logits`, `logistic`, `probabilities` [.., 2], `class_ids` and `classes` [.., 1], `all_class_ids` and
    `all_classes` [batch, 2]. `classes` and `all_classes` are ids, which the host replaces by names.

    Args:
        weight_column: the name of the weight feature ([D0, ..., DN] or [D0, ..., DN, 1]), or a numeric column.
        thresholds: numbers in (0, 1). Each adds accuracy, precision and recall at this threshold.
        label_vocabulary: the two label strings. Without it, labels are numbers in [0, 1], including soft labels.
        loss_reduction: one of `Reduction`.
        loss_fn: a function of (labels, logits[, features, loss_reduction]) that returns losses [D0, ..., DN, 1].
        name: the suffix of metric and summary keys.
        loss_options: the smoothing, focal exponent and class weights of the cross entropy.
        plots: whether to draw confusion matrix, ROC, precision-recall and calibration at each evaluation (needs
            matplotlib), and add the metric `calibration_error`.

    Raises:
        ArgumentError: an argument is outside its range.

    Example:
        >>> import numpy as np
        >>> head = BinaryClassHead()
        >>> float(head.loss(labels=np.array([[1], [1]]), logits=np.array([[45.0], [-41.0]])))
        20.5

    Source: `tf.estimator.BinaryClassHead`.
    """

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Iterable[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: LossFn | None = None,
        name: str | None = None,
        *,
        loss_options: LossOptions = PLAIN_LOSS,
        plots: bool = False,
    ) -> None:
        super().__init__(
            name=name,
            logits_dimension=1,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
            loss_fn=loss_fn,
        )
        self._thresholds = check_thresholds(thresholds)
        self._vocabulary = None if label_vocabulary is None else Vocabulary(label_vocabulary)
        if self._vocabulary is not None and len(self._vocabulary) != 2:
            raise ArgumentError(f"A BinaryClassHead has 2 classes; label_vocabulary has {len(self._vocabulary)}.")
        self._options = check_options(loss_options, loss_fn, 2)
        self._plots = plots

    def process_labels(self, labels: Any, logits: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """Returns the labels as float32 [D0, ..., DN, 1]."""
        if self._vocabulary is not None and labels is not None and are_strings(labels):
            labels = self._vocabulary.ids(labels)
        checked = check_labels(labels, logits, 1).astype(jnp.float32)
        return checked, check_label_range(checked, 2)

    def example_loss(self, labels: jax.Array, logits: jax.Array) -> jax.Array:
        """Returns the sigmoid cross entropy."""
        return sigmoid_cross_entropy(labels, logits, self._options)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions by key. "classes" and "all_classes" are ids, which the host replaces by names.

        Raises:
            ArgumentError: a key is unknown.
        """
        wanted = check_prediction_keys(keys, _KEYS)
        x = check_logits(logits, 1)
        both = jnp.concatenate([jnp.zeros_like(x), x], axis=-1)
        class_ids, every_id = jnp.argmax(both, axis=-1, keepdims=True).astype(jnp.int32), all_class_ids(x, 2)
        found = {
            PredictionKeys.LOGITS: x,
            PredictionKeys.LOGISTIC: jax.nn.sigmoid(x),
            PredictionKeys.PROBABILITIES: jax.nn.softmax(both),
            PredictionKeys.CLASS_IDS: class_ids,
            PredictionKeys.CLASSES: class_ids,
            PredictionKeys.ALL_CLASS_IDS: every_id,
            PredictionKeys.ALL_CLASSES: every_id,
        }
        return {key: found[key] for key in wanted}

    def task_metrics(self, examples: Examples) -> dict[str, Metric]:
        """Returns accuracy, precision, recall, means, areas under curves, and scores at thresholds."""
        labels, weights = examples.labels, examples.weights
        predictions = self.predictions(examples.logits)
        class_ids, logistic = predictions[PredictionKeys.CLASS_IDS], predictions[PredictionKeys.LOGISTIC]
        found: dict[str, Metric] = {
            MetricKeys.ACCURACY: accuracy(labels, class_ids, weights),
            MetricKeys.PRECISION: precision(labels, class_ids, weights),
            MetricKeys.RECALL: recall(labels, class_ids, weights),
            MetricKeys.PREDICTION_MEAN: mean(logistic, weights),
            MetricKeys.LABEL_MEAN: mean(labels, weights),
            MetricKeys.ACCURACY_BASELINE: accuracy_baseline(labels, weights),
            MetricKeys.AUC: auc(labels, logistic, weights),
            MetricKeys.AUC_PR: auc(labels, logistic, weights, curve="PR"),
        }
        if self._plots:
            source = collected(self.name, self.class_names)
            found[MetricKeys.CALIBRATION_ERROR] = plotted_metrics(
                source, labels=labels, scores=logistic, weights=weights
            )
        for threshold in self._thresholds:
            called = (logistic > threshold).astype(jnp.float32)
            found[MetricKeys.ACCURACY_AT_THRESHOLD % threshold] = accuracy(labels, called, weights)
            found[MetricKeys.PRECISION_AT_THRESHOLD % threshold] = precision(
                labels, logistic, weights, threshold=threshold
            )
            found[MetricKeys.RECALL_AT_THRESHOLD % threshold] = recall(labels, logistic, weights, threshold=threshold)
        return found

    def export_outputs(self, predictions: Mapping[Any, jax.Array]) -> dict[str, ExportOutput]:
        """Returns classification as the default signature, regression of the logistic, and all predictions."""
        regression = {REGRESS_SERVING_KEY: RegressionOutput(predictions[PredictionKeys.LOGISTIC])}
        return classification_outputs(predictions, self.class_names, **regression)

    def prediction_transforms(self, head: str | None = None) -> tuple[HostTransform, ...]:
        """Returns the transform that adds names to `classes` and `all_classes`."""
        keys = [PredictionKeys.CLASSES, PredictionKeys.ALL_CLASSES]
        return (ClassNames(self.class_names, keys, head),)

    def label_transforms(self, feature: str = "labels") -> tuple[HostTransform, ...]:
        """Returns the transform that converts label strings to ids in the input."""
        return () if self._vocabulary is None else (LabelIds(self._vocabulary.names, feature),)

    def label_rules(self) -> dict[str, DataRule]:
        """Returns the rule of one class per example."""
        names = None if self._vocabulary is None else self._vocabulary.names
        return {"": ClassLabels(n_classes=2, names=names, soft=True)}

    def with_class_names(self, names: Mapping[str, Sequence[str]]) -> Self:
        """Returns a copy with these class names."""
        made = copy.copy(self)
        vars(made)["_vocabulary"] = Vocabulary(list(names[""]))
        return made

    def evaluation_hooks(self) -> tuple[Hook, ...]:
        """Returns the hooks that draw plots, if plots are requested."""
        return (PlotHook(collected(self.name, self.class_names)),) if self._plots else ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the two classes."""
        return class_names(self._vocabulary, 2)
