"""A head for regression with the Huber loss: quadratic near the label, linear far from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import optax
from jax import Array

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.export.outputs import PredictOutput, RegressionOutput
from estimator_core.metrics.mean import mean
from estimator_core.metrics.weighting import same_shape
from estimator_core.step.train_op import minimize


class AcmeHeadHead:
    """Predicts one number for each example.

    Args:
        delta: where the loss turns from quadratic to linear.
        name: suffix of the names of metrics.
    """

    logits_dimension = 1

    def __init__(self, delta: float = 1.0, name: str | None = None) -> None:
        self.delta = delta
        self.name = name

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[Array] | None = None,
    ) -> Array:
        """The mean of the losses of the examples, and the regularization losses."""
        return jnp.mean(self._losses(labels, logits)) + sum(regularization_losses or [])

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Array]:
        """`predictions`: float32 [batch, 1]."""
        everything = {"predictions": jnp.asarray(logits)}
        return {key: everything[key] for key in (everything if keys is None else keys)}

    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Array] | None = None,
    ) -> dict[str, Any]:
        """`average_loss`, and `label/mean`."""
        suffix = "" if self.name is None else f"/{self.name}"
        return {
            f"average_loss{suffix}": mean(self._losses(labels, logits)),
            f"label/mean{suffix}": mean(jnp.asarray(labels, jnp.float32).reshape(-1)),
        }

    def create_estimator_spec(
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Any = None,
        update_ops: Any = None,
        regularization_losses: Sequence[Array] | None = None,
    ) -> ec.EstimatorSpec:
        """What model_fn returns."""
        predictions = self.predictions(logits)
        if mode == ec.ModeKeys.PREDICT:
            outputs = {"serving_default": PredictOutput(predictions), "price": RegressionOutput(logits)}
            return ec.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
        loss = self.loss(labels, logits, features, mode, regularization_losses)
        if mode == ec.ModeKeys.EVAL:
            metrics = self.metrics(features, logits, labels, mode, regularization_losses)
            return ec.EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=metrics)
        train_op = train_op_fn(loss) if train_op_fn is not None else minimize(loss, optimizer)
        return ec.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    def _losses(self, labels: Any, logits: Any) -> Array:
        logits, labels = jnp.asarray(logits), jnp.asarray(labels, jnp.float32).reshape(-1)
        if logits.shape != (len(labels), 1):
            raise ArgumentError(f"logits have shape {logits.shape}; {len(labels)} labels need ({len(labels)}, 1)")
        return optax.huber_loss(logits[:, 0], labels, delta=self.delta)
