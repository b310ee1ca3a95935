"""The contract of heads. A head is the part of a model after its last hidden layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from jax import Array

    from estimator_core._metrics.base import Metric
    from estimator_core.specs import EstimatorSpec

__all__ = ["Head"]


@runtime_checkable
class Head(Protocol):
    """Computes the loss, metrics, predictions and serving signatures from logits and labels.

    `estimator_heads.BaseHead` writes `create_estimator_spec` for heads that define `loss`, `predictions` and `metrics`.

    Source: the class `tf.estimator.Head`.
    """

    @property
    def name(self) -> str | None:
        """The suffix of metric and summary keys (`auc/name`)."""
        ...

    @property
    def logits_dimension(self) -> int:
        """Size of the last axis of the logits that this head expects."""
        ...

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[Array] | None = None,
    ) -> Array:
        """Returns the scalar loss, float32 [], including the regularization losses. Rows with weight 0 do not count.

        Args:
            labels: labels of the batch, as the input yields them: an array [batch, ...], or a tree of arrays.
            logits: float32 [batch, logits_dimension], or a tree of such arrays if the head accepts several.
            features: features of the batch by name, [batch, ...] each; None if the head reads no features.
            mode: one of `ModeKeys`.
            regularization_losses: scalars on the scale of the loss.

        Raises:
            ValueError: labels and logits do not match each other or the head.
        """
        ...

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Array]:
        """Returns the predictions by key, [batch, ...] each: those in `keys`, or all.

        Args:
            logits: float32 [batch, logits_dimension], or a tree of such arrays if the head accepts several.
            keys: keys of the predictions to return. None: all.
        """
        ...

    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Array] | None = None,
    ) -> dict[str, Metric]:
        """Returns the streaming metrics of one batch, by key.

        Args:
            labels: labels of the batch, as the input yields them: an array [batch, ...], or a tree of arrays.
            logits: float32 [batch, logits_dimension], or a tree of such arrays if the head accepts several.
            features: features of the batch by name, [batch, ...] each; None if the head reads no features.
            mode: one of `ModeKeys`.
            regularization_losses: scalars on the scale of the loss.

        Raises:
            ValueError: labels and logits do not match each other or the head.
        """
        ...

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
    ) -> EstimatorSpec:
        """Returns the EstimatorSpec of one mode.

        Args:
            features: features of the batch by name, [batch, ...] each.
            mode: one of `ModeKeys`.
            logits: float32 [batch, logits_dimension], or a tree of such arrays if the head accepts several.
            labels: labels of the batch, [batch, ...]; None in prediction.
            optimizer: trains the variables; required in training unless `train_op_fn` is set.
            trainable_variables: paths of the variables to train. None: all.
            train_op_fn: a function from the loss to the train_op; replaces `optimizer`.
            update_ops: further updates of a training step.
            regularization_losses: scalars, added to the loss.

        Raises:
            ValueError: labels and logits do not match each other or the head, or an argument that the mode requires is
                missing.
        """
        ...
