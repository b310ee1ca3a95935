"""The head for one class per token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.inputs import apply_transforms
from estimator_heads.base_head import BaseHead
from estimator_heads.checks import NO_LABELS, as_numbers
from estimator_heads.classification import PLAIN_LOSS
from estimator_heads.data.weights import weight_rules
from estimator_heads.flattening import flat_steps, steps_as_rows
from estimator_heads.keys import PredictionKeys
from estimator_heads.metrics.span_f1 import span_f1
from estimator_heads.multi_class_head import MultiClassHead
from estimator_heads.reduction import Reduction
from estimator_heads.transforms import LabelIds
from estimator_heads.vocabulary import are_strings

if TYPE_CHECKING:
    from estimator_core.export import ExportOutput
    from estimator_core.inputs import HostTransform
    from estimator_core.metrics import Metric
    from estimator_heads.data.rule import DataRule
    from estimator_heads.losses import LossOptions


class TokenClassificationHead(BaseHead):
    """Predicts one of several classes for each token, with the softmax of its logits.

    Tokens whose label is `ignore_label`, or that the mask excludes, count neither in the loss nor in the metrics.
    `SUM_OVER_BATCH_SIZE` divides by the number of tokens that count. Metrics: those of MultiClassHead. With `spans`,
    also `span_precision`, `span_recall` and `span_f1`.

    Args:
        n_classes: the number of classes, above 2.
        mask_column: the name of the feature with the mask, [batch, time], 0 or False without a token. None: only the
            labels decide.
        ignore_label: the label of tokens that do not count.
        weight_column: the name of the feature with one weight per token [batch, time].
        label_names: the names of the classes. Labels may then be these strings, or "" without a token.
        spans: whether the names follow the BIO scheme ("O", "B-<type>", "I-<type>") and whole spans are scored.
        loss_reduction: one of `Reduction`.
        name: the suffix of metric and summary keys.
        loss_options: the smoothing, focal exponent and class weights of the cross entropy.

    Raises:
        ArgumentError: an argument is outside its range, or `spans` is set without names.

    Example:
        >>> import numpy as np
        >>> head = TokenClassificationHead(3)
        >>> logits, labels = np.zeros((1, 4, 3)), np.array([[0, 2, -100, -100]])
        >>> round(float(head.loss(labels, logits)), 4)
        1.0986
    """

    def __init__(
        self,
        n_classes: int,
        *,
        mask_column: str | None = None,
        ignore_label: int = -100,
        weight_column: str | None = None,
        label_names: Sequence[str] | None = None,
        spans: bool = False,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
        loss_options: LossOptions = PLAIN_LOSS,
    ) -> None:
        super().__init__(name=name, logits_dimension=n_classes, loss_reduction=loss_reduction)
        if spans and label_names is None:
            raise ArgumentError("spans=True needs label_names in the BIO scheme.")
        self._tokens = MultiClassHead(
            n_classes,
            weight_column=weight_column,
            label_vocabulary=None if label_names is None else list(label_names),
            loss_reduction=loss_reduction,
            name=name,
            loss_options=loss_options,
        )
        self._mask_column = mask_column
        self._weight_column = weight_column
        self._ignore_label = ignore_label
        self._label_names = None if label_names is None else tuple(label_names)
        self._span_names = tuple(label_names) if spans and label_names else None

    def weight_rules(self) -> dict[str, DataRule]:
        """Returns the rule that weights are finite and at least 0."""
        return weight_rules(self._weight_column)

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> jax.Array:
        """Returns the cross entropy of the tokens that count."""
        ids, valid = self._valid_labels(labels, logits, features)
        with steps_as_rows(valid):
            return self._tokens.loss(
                flat_steps(ids),
                flat_steps(jnp.asarray(logits)),
                self._flat_weights(features),
                mode,
                regularization_losses,
            )

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions of MultiClassHead for every token. `class_ids` are [batch, time, 1]."""
        return self._tokens.predictions(logits, keys)

    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> dict[str, Metric]:
        """Returns the metrics of the tokens that count, and of spans."""
        ids, valid = self._valid_labels(labels, logits, features)
        with steps_as_rows(valid):
            found = self._tokens.metrics(
                self._flat_weights(features),
                flat_steps(jnp.asarray(logits)),
                flat_steps(ids),
                mode,
                regularization_losses,
            )
        if self._span_names is not None:
            key = PredictionKeys.CLASS_IDS
            called = self.predictions(logits, [key])[key][..., 0]
            for statistic in ("precision", "recall", "f1"):
                found[self.metric_key(f"span_{statistic}")] = span_f1(
                    ids, called, self._span_names, valid=valid, statistic=statistic
                )
        return found

    def export_outputs(self, predictions: Mapping[Any, jax.Array]) -> dict[str, ExportOutput]:
        """Returns all predictions as the default signature, because a classification output has no axis for tokens."""
        return super().export_outputs(predictions)

    def prediction_transforms(self, head: str | None = None) -> tuple[HostTransform, ...]:
        """Returns the transform that adds the names of the classes."""
        return self._tokens.prediction_transforms(head)

    def label_transforms(self, feature: str = "labels") -> tuple[HostTransform, ...]:
        """Returns the transform that converts class names to ids in the input. The empty string is not a token."""
        if self._label_names is None:
            return ()
        return (LabelIds(self._label_names, feature, self._ignore_label),)

    def _valid_labels(
        self, labels: Any, logits: Any, features: Mapping[str, Any] | None
    ) -> tuple[jax.Array, jax.Array]:
        """Returns class ids [batch, time], with 0 for tokens that do not count, and booleans that mark the tokens that
        count.
        """
        if labels is None:
            raise ArgumentError(NO_LABELS)
        if are_strings(labels):
            labels = apply_transforms(self.label_transforms(), {"labels": np.asarray(labels)})["labels"]
        shape = jnp.shape(logits)[:-1]
        ids = as_numbers(labels)
        if ids.ndim == len(shape) + 1 and ids.shape[-1] == 1:
            ids = ids[..., 0]
        if len(shape) != 2 or ids.shape != shape:
            raise ArgumentError(
                "A TokenClassificationHead takes logits [batch, time, n_classes] and labels [batch, time]; "
                f"got {jnp.shape(logits)} and {ids.shape}."
            )
        valid = ids != self._ignore_label
        if self._mask_column is not None:
            if features is None or self._mask_column not in features:
                raise ArgumentError(
                    f"The mask column {self._mask_column!r} is not among the features. Found: {sorted(features or {})}."
                )
            mask = jnp.asarray(features[self._mask_column])
            if mask.shape != shape:
                raise ArgumentError(f"The mask has shape {mask.shape}, the labels {shape}. They must match.")
            valid = valid & (mask != 0)
        return jnp.where(valid, ids, 0), valid

    def _flat_weights(self, features: Mapping[str, Any] | None) -> dict[str, jax.Array]:
        if self._weight_column is None or features is None or self._weight_column not in features:
            return {}
        return {self._weight_column: flat_steps(jnp.asarray(features[self._weight_column]))}
