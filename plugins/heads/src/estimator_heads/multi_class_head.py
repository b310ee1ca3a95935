"""The head for one of several classes."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError, check_count, is_integer
from estimator_core.metrics import accuracy
from estimator_heads.checks import check_label_range, check_labels, check_logits, check_prediction_keys
from estimator_heads.classification import (
    PLAIN_LOSS,
    all_class_ids,
    check_options,
    class_names,
    classification_outputs,
)
from estimator_heads.data.class_labels import ClassLabels
from estimator_heads.keys import MetricKeys, PredictionKeys
from estimator_heads.losses import softmax_cross_entropy
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
    PredictionKeys.PROBABILITIES,
    PredictionKeys.CLASS_IDS,
    PredictionKeys.CLASSES,
    PredictionKeys.ALL_CLASS_IDS,
    PredictionKeys.ALL_CLASSES,
)


class MultiClassHead(PerExampleHead):
    """Predicts one of three or more classes with the softmax of the logits.

    Predictions: `logits`, `probabilities`, `class_ids` and `classes` [.., 1], `all_class_ids` and `all_classes` [batch,
    n_classes]. `classes` and `all_classes` are ids, which the host replaces by names.

    Args:
        n_classes: the number of classes, above 2.
        weight_column: the name of the weight feature ([D0, ..., DN] or [D0, ..., DN, 1]), or a numeric column.
        label_vocabulary: the label strings, `n_classes` of them. Without it, labels are class ids.
        loss_reduction: one of `Reduction`.
        loss_fn: a function of (labels, logits[, features, loss_reduction]) that returns losses [D0, ..., DN, 1].
        name: the suffix of metric and summary keys.
        loss_options: the smoothing, focal exponent and class weights of the cross entropy.
        plots: whether to draw the confusion matrix and the calibration at each evaluation (needs matplotlib), and add
            the metric `calibration_error`.

    Raises:
        ArgumentError: an argument is outside its range.

    Example:
        >>> import numpy as np
        >>> head = MultiClassHead(3)
        >>> round(float(head.loss(labels=np.array([[1], [1]]), logits=np.array([[10.0, 0, 0], [0, 10.0, 0]]))), 4)
        5.0001

    Source: `tf.estimator.MultiClassHead`.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: LossFn | None = None,
        name: str | None = None,
        *,
        loss_options: LossOptions = PLAIN_LOSS,
        plots: bool = False,
    ) -> None:
        if not is_integer(n_classes):
            raise ArgumentError(f"n_classes cannot be None or another type than int. Given: {n_classes!r}")
        if n_classes <= 2:
            raise ArgumentError(f"n_classes must be > 2: {n_classes}. For two classes use BinaryClassHead.")
        check_count("n_classes", n_classes, least=3)  # refuses a number of more than 64 bits
        super().__init__(
            name=name,
            logits_dimension=n_classes,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
            loss_fn=loss_fn,
        )
        self._vocabulary = None if label_vocabulary is None else Vocabulary(label_vocabulary)
        if self._vocabulary is not None and len(self._vocabulary) != n_classes:
            raise ArgumentError(
                f'"label_vocabulary" does not have "n_classes" items. len(label_vocabulary)={len(self._vocabulary)}, '
                f"n_classes={n_classes}, label_vocabulary={label_vocabulary}"
            )
        self._options = check_options(loss_options, loss_fn, n_classes)
        self._plots = plots

    def process_labels(self, labels: Any, logits: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """Returns the labels as integer class ids [D0, ..., DN, 1]."""
        if self._vocabulary is not None and labels is not None and are_strings(labels):
            labels = self._vocabulary.ids(labels)
        checked = check_labels(labels, logits, 1)
        if not jnp.issubdtype(checked.dtype, jnp.integer):
            raise ArgumentError(f"Labels dtype should be integer. Instead got {checked.dtype}.")
        return checked, check_label_range(checked, self.logits_dimension)

    def example_loss(self, labels: jax.Array, logits: jax.Array) -> jax.Array:
        """Returns the softmax cross entropy."""
        return softmax_cross_entropy(labels[..., 0], logits, self._options)[..., None]

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions by key. "classes" and "all_classes" are ids, which the host replaces by names.

        Raises:
            ArgumentError: a key is unknown.
        """
        wanted = check_prediction_keys(keys, _KEYS)
        x = check_logits(logits, self.logits_dimension)
        class_ids = jnp.argmax(x, axis=-1, keepdims=True).astype(jnp.int32)
        every_id = all_class_ids(x, self.logits_dimension)
        found = {
            PredictionKeys.LOGITS: x,
            PredictionKeys.PROBABILITIES: jax.nn.softmax(x),
            PredictionKeys.CLASS_IDS: class_ids,
            PredictionKeys.CLASSES: class_ids,
            PredictionKeys.ALL_CLASS_IDS: every_id,
            PredictionKeys.ALL_CLASSES: every_id,
        }
        return {key: found[key] for key in wanted}

    def task_metrics(self, examples: Examples) -> dict[str, Metric]:
        """Returns the accuracy, and the calibration error if plots are on."""
        labels, weights = examples.labels, examples.weights
        predictions = self.predictions(examples.logits)
        found: dict[str, Metric] = {
            MetricKeys.ACCURACY: accuracy(labels, predictions[PredictionKeys.CLASS_IDS], weights)
        }
        if self._plots:
            source, scores = collected(self.name, self.class_names), predictions[PredictionKeys.PROBABILITIES]
            found[MetricKeys.CALIBRATION_ERROR] = plotted_metrics(source, labels=labels, scores=scores, weights=weights)
        return found

    def export_outputs(self, predictions: Mapping[Any, jax.Array]) -> dict[str, ExportOutput]:
        """Returns classification as the default signature, and all predictions."""
        return classification_outputs(predictions, self.class_names)

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
        return {"": ClassLabels(n_classes=self.logits_dimension, names=names)}

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
        """The names of the classes."""
        return class_names(self._vocabulary, self.logits_dimension)
