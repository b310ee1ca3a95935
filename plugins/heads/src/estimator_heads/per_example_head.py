"""Heads whose loss is a weighted reduction of losses per example."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from estimator_core.metrics import mean
from estimator_heads.base_head import BaseHead, add_losses
from estimator_heads.checks import check_logits, read_weights
from estimator_heads.data.weights import weight_rules
from estimator_heads.keys import MetricKeys
from estimator_heads.loss_function import LossFn, call_loss_fn, check_loss_fn
from estimator_heads.reduction import Reduction, reduce_loss

if TYPE_CHECKING:
    from estimator_core.metrics import Metric
    from estimator_heads.data.rule import DataRule


class Examples(NamedTuple):
    """A batch after processing by a head.

    Attributes:
        logits: float32 [D0, ..., DN, logits_dimension].
        labels: the processed labels: ids or float32.
        losses: float32 [D0, ..., DN, loss dimension], without weights. NaN if the label is out of range.
        weights: float32, broadcast against `losses`. None without a weight column.
    """

    logits: jax.Array
    labels: jax.Array
    losses: jax.Array
    weights: jax.Array | None


class PerExampleHead(BaseHead):
    """Base class of heads with one loss per example. A subclass defines labels, losses and task metrics.

    Args:
        name: the suffix of metric and summary keys.
        logits_dimension: the size of the last axis of the logits.
        weight_column: the name of the weight feature, or a numeric column.
        loss_reduction: one of `Reduction`.
        loss_fn: a function that replaces the loss of the head.
        loss_dimension: the size of the last axis of the losses. If it is not 1, weights may also have this axis.

    Raises:
        ArgumentError: the reduction is unknown, or loss_fn has other arguments.
    """

    def __init__(
        self,
        *,
        name: str | None,
        logits_dimension: int,
        weight_column: Any = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: LossFn | None = None,
        loss_dimension: int = 1,
    ) -> None:
        super().__init__(name=name, logits_dimension=logits_dimension, loss_reduction=loss_reduction)
        check_loss_fn(loss_fn)
        self._weight_column = weight_column
        self._loss_fn = loss_fn
        self._loss_dimension = loss_dimension

    def weight_rules(self) -> dict[str, DataRule]:
        """Returns the rule that weights are finite and at least 0."""
        return weight_rules(self._weight_column)

    @abc.abstractmethod
    def process_labels(self, labels: Any, logits: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """Returns the labels for the loss, and booleans that mark labels in range. None: all are in range."""

    @abc.abstractmethod
    def example_loss(self, labels: jax.Array, logits: jax.Array) -> jax.Array:
        """Returns the loss of each example, float32 [D0, ..., DN, loss dimension]."""

    @abc.abstractmethod
    def task_metrics(self, examples: Examples) -> dict[str, Metric]:
        """Returns the metrics in addition to the average loss."""

    def examples(self, labels: Any, logits: Any, features: Mapping[str, Any] | None) -> Examples:
        """Checks a batch and computes its losses."""
        checked = check_logits(logits, self.logits_dimension)
        processed, valid = self.process_labels(labels, checked)
        if self._loss_fn is None:
            losses = self.example_loss(processed, checked)
        else:
            losses = call_loss_fn(
                self._loss_fn,
                labels=processed,
                logits=checked,
                features=features,
                loss_reduction=self.loss_reduction,
                dimension=self._loss_dimension,
            )
        if valid is not None:
            losses = jnp.where(jnp.all(valid, axis=-1, keepdims=True), losses, jnp.nan)
        weights = read_weights(features, self._weight_column, checked, per_logit=self._loss_dimension > 1)
        return Examples(checked, processed, losses, weights)

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> jax.Array:
        """Returns the weighted, reduced loss, including the regularization losses, as a float32 scalar."""
        examples = self.examples(labels, logits, features)
        loss = reduce_loss(examples.losses, examples.weights, self.loss_reduction)
        return add_losses(loss, regularization_losses)

    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> dict[str, Metric]:
        """Returns `average_loss`, the metrics of the task, and `regularization_loss` if there are such losses."""
        examples = self.examples(labels, logits, features)
        found: dict[str, Metric] = {MetricKeys.LOSS_MEAN: mean(examples.losses, examples.weights)}
        found |= self.task_metrics(examples)
        named = {self.metric_key(key): metric for key, metric in found.items()}
        return named | self._regularization_metric(regularization_losses)
