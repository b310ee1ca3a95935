"""The task of one class per example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import estimator_core as ec
from estimator_canned_bert.tasks.task import weighted_mean
from estimator_core.errors import ArgumentError


class Classification:
    """Predicts one of several classes, with softmax cross entropy.

    Args:
        num_labels: the number of classes.
        label_names: the names of the classes, which exports return instead of ids.
        class_weights: the weight of the examples of each class in the loss: `sum(w * loss) / sum(w)`.

    Raises:
        ArgumentError: there are fewer than two classes, or a list has another length.

    Example:
        >>> task = Classification(2, label_names=["no", "yes"])
        >>> task.predictions(jnp.array([[0.0, 1.0]]))["predictions"].tolist()
        [1]
    """

    def __init__(
        self,
        num_labels: int,
        *,
        label_names: Sequence[str] | None = None,
        class_weights: Sequence[float] | None = None,
    ) -> None:
        if num_labels < 2:
            raise ArgumentError(f"Classification needs at least two classes, given: {num_labels}.")
        for name, values in (("label_names", label_names), ("class_weights", class_weights)):
            if values is not None and len(values) != num_labels:
                raise ArgumentError(f"{name} has {len(values)} entries for {num_labels} classes.")
        if class_weights is not None and not all(weight >= 0 for weight in class_weights):
            raise ArgumentError(f"class_weights should not be negative, given: {list(class_weights)}.")
        self.outputs = num_labels
        self._names = None if label_names is None else tuple(label_names)
        self._weights = None if class_weights is None else np.asarray(class_weights, np.float32)

    def loss(self, logits: Any, labels: Any) -> Any:
        """Returns the mean cross entropy, weighted by class."""
        ids = jnp.asarray(labels).reshape(-1)
        return weighted_mean(self._losses(logits, ids), None if self._weights is None else self._each(ids))

    def predictions(self, logits: Any) -> dict[str, Any]:
        """Returns `probabilities` and `logits` [batch, classes], and `predictions`: the class ids [batch]."""
        return {
            "probabilities": jax.nn.softmax(logits, axis=-1),
            "predictions": jnp.argmax(logits, axis=-1).astype(jnp.int32),
            "logits": logits,
        }

    def metrics(self, logits: Any, labels: Any) -> dict[str, Any]:
        """Returns `eval_accuracy` and `eval_loss`, the names of google-research/bert."""
        ids = jnp.asarray(labels).reshape(-1)
        weights = None if self._weights is None else self._each(ids)
        return {
            "eval_accuracy": ec.metrics.accuracy(ids, jnp.argmax(logits, axis=-1)),
            "eval_loss": ec.metrics.mean(self._losses(logits, ids), weights),
        }

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the signatures `serving_default` (scores and classes) and `predict` (all predictions)."""
        return {
            "serving_default": ec.export.ClassificationOutput(
                scores=predictions["probabilities"],
                classes=predictions["predictions"][:, None],
                class_names=self._names,
            ),
            "predict": ec.export.PredictOutput(dict(predictions)),
        }

    def _losses(self, logits: Any, ids: Any) -> Any:
        scores = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
        # A compiled step cannot refuse an id out of range. NaN stops the training and is visible.
        return -jnp.take_along_axis(scores, ids[:, None], axis=-1, mode="fill", fill_value=jnp.nan)[:, 0]

    def _each(self, ids: Any) -> Any:
        return jnp.take(jnp.asarray(self._weights), ids, mode="fill", fill_value=jnp.nan)
