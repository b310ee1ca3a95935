"""The base class of all heads, which creates the EstimatorSpec of each mode from loss, predictions and metrics."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export import PredictOutput
from estimator_core.metrics import mean
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec
from estimator_heads.keys import DEFAULT_SERVING_KEY, PREDICT_SERVING_KEY, MetricKeys
from estimator_heads.reduction import Reduction, check_reduction
from estimator_heads.train_op import make_train_op, write_summaries

if TYPE_CHECKING:
    from estimator_core.export import ExportOutput
    from estimator_core.hooks import Hook
    from estimator_core.inputs import HostTransform
    from estimator_core.metrics import Metric
    from estimator_heads.data.rule import DataRule


class BaseHead(abc.ABC):
    """Base class of heads. A subclass defines `loss`, `predictions` and `metrics`, and may define its exports.

    Args:
        name: the suffix of metric and summary keys; required inside a MultiHead.
        logits_dimension: the size of the last axis of the logits.
        loss_reduction: one of `Reduction`.

    Raises:
        ArgumentError: the reduction is unknown.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> import estimator_core as ec
        >>> class AbsoluteHead(BaseHead):
        ...     def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
        ...         return jnp.mean(jnp.abs(labels - logits))
        ...
        ...     def predictions(self, logits, keys=None):
        ...         return {"predictions": logits}
        ...
        ...     def metrics(self, features, logits, labels, mode=None, regularization_losses=None):
        ...         return {"error": ec.metrics.mean(jnp.abs(labels - logits))}
        >>> spec = AbsoluteHead().create_estimator_spec({}, "eval", logits=np.zeros((2, 1)), labels=np.ones((2, 1)))
        >>> spec.eval_metric_ops["error"].compute()
        1.0
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        logits_dimension: int = 1,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    ) -> None:
        check_reduction(loss_reduction)
        if name is not None and (not isinstance(name, str) or not name):
            raise ArgumentError(f"The name of a head must be a string that is not empty. Given: {name!r}.")
        self._name = name
        self._logits_dimension = logits_dimension
        self._loss_reduction = loss_reduction

    @property
    def name(self) -> str | None:
        """The suffix of metric and summary keys (`auc/name`)."""
        return self._name

    @property
    def logits_dimension(self) -> int:
        """The size of the last axis of the logits that this head expects."""
        return self._logits_dimension

    @property
    def loss_reduction(self) -> str:
        """The reduction of the losses of a batch to one number: one of `Reduction`."""
        return self._loss_reduction

    @abc.abstractmethod
    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> jax.Array:
        """Returns the scalar loss, including the regularization losses."""

    @abc.abstractmethod
    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions by key: those in `keys`, or all."""

    @abc.abstractmethod
    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> dict[str, Metric]:
        """Returns the streaming metrics of one batch by key."""

    def export_outputs(self, predictions: Mapping[Any, jax.Array]) -> dict[str, ExportOutput]:
        """Returns the serving signatures. By default, these are all predictions."""
        everything = PredictOutput(dict(predictions))
        return {DEFAULT_SERVING_KEY: everything, PREDICT_SERVING_KEY: everything}

    def prediction_transforms(self, head: str | None = None) -> tuple[HostTransform, ...]:
        """Returns the host transforms of the predictions, which add class names.

        Args:
            head: the name of the head inside a MultiHead, in which prediction keys are `(head, key)`.
        """
        return ()

    def label_transforms(self, feature: str = "labels") -> tuple[HostTransform, ...]:
        """Returns the host transforms from label strings to ids, for the argument `label_transforms` of an Estimator.

        Args:
            feature: the name of the labels, or "labels" if they are one array.
        """
        return ()

    def label_rules(self) -> dict[str, DataRule]:
        """Returns the rules for labels on the host, by head name inside a MultiHead, otherwise by ""."""
        return {}

    def weight_rules(self) -> dict[str, DataRule]:
        """Returns the rules for weights on the host, by feature name."""
        return {}

    def with_class_names(self, names: Mapping[str, Sequence[str]]) -> Self:
        """Returns this head with learned class names, by the keys of `label_rules`."""
        return self

    def evaluation_hooks(self) -> tuple[Hook, ...]:
        """Returns the hooks of the evaluation, which draw plots."""
        return ()

    def metric_key(self, key: str) -> str:
        """Returns `key`, or `key/name` for a head with a name."""
        return f"{key}/{self.name}" if self.name else key

    def create_estimator_spec(
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[str] | None = None,
        train_op_fn: Callable[[jax.Array], Any] | None = None,
        update_ops: Sequence[Callable[[], Any]] | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> EstimatorSpec:
        """Returns the EstimatorSpec of one mode, for a model_fn to return.

        Args:
            features: the features, including the weights that the head reads.
            mode: one of `ModeKeys`.
            logits: the logits, as `loss` and `predictions` accept them.
            labels: the labels, as `loss` accepts them. They are required for training and evaluation.
            optimizer: an optax transformation. Training requires exactly one of `optimizer` and `train_op_fn`.
            trainable_variables: the names of the variables to train. None: all variables.
            train_op_fn: returns the train_op for the loss.
            update_ops: functions without arguments, called in training.
            regularization_losses: the scalars to add to the loss.

        Raises:
            ArgumentError: the mode is unknown, there is not exactly one optimizer, or a method of the head refuses an
                argument.
        """
        if mode not in ModeKeys.ALL:
            raise ArgumentError(f"mode={mode} unrecognized. It must be one of {ModeKeys.ALL}.")
        predictions = self.predictions(logits)
        transforms = self.prediction_transforms()
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(
                mode,
                predictions=predictions,
                export_outputs=self.export_outputs(predictions),
                prediction_transforms=transforms,
            )
        loss = self.loss(labels, logits, features, mode, regularization_losses)
        if mode == ModeKeys.EVAL:
            return EstimatorSpec(
                mode,
                predictions=predictions,
                loss=loss,
                eval_metric_ops=self.metrics(features, logits, labels, mode, regularization_losses),
                evaluation_hooks=self.evaluation_hooks(),
                prediction_transforms=transforms,
            )
        train_op = make_train_op(
            loss,
            optimizer=optimizer,
            trainable_variables=trainable_variables,
            train_op_fn=train_op_fn,
            update_ops=update_ops,
        )
        self.write_summaries(loss, sum_of_losses(regularization_losses))
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    def write_summaries(self, loss: jax.Array, regularization_loss: jax.Array | None) -> None:
        """Writes the summaries of a training step: `loss/<name>` and `regularization_loss[/<name>]`."""
        write_summaries(self.name, loss, regularization_loss)

    def _regularization_metric(self, regularization_losses: Sequence[jax.Array] | None) -> dict[str, Metric]:
        regularization_loss = sum_of_losses(regularization_losses)
        if regularization_loss is None:
            return {}
        return {self.metric_key(MetricKeys.LOSS_REGULARIZATION): mean(regularization_loss)}


def sum_of_losses(losses: Sequence[jax.Array] | None) -> jax.Array | None:
    """Returns the sum of regularization losses, or None for None.

    Raises:
        ArgumentTypeError: the losses are not a list or tuple.
    """
    if losses is None:
        return None
    if not isinstance(losses, (list, tuple)):
        raise ArgumentTypeError(f"regularization_losses should be a list or a tuple. Given type: {type(losses)}.")
    return jnp.sum(jnp.stack([jnp.asarray(loss, jnp.float32) for loss in losses])) if losses else jnp.float32(0)


def add_losses(loss: jax.Array, regularization_losses: Sequence[jax.Array] | None) -> jax.Array:
    """Returns a loss plus the regularization losses."""
    regularization_loss = sum_of_losses(regularization_losses)
    return loss if regularization_loss is None else loss + regularization_loss
