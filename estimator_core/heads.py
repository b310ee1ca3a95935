"""The contract of heads: the part of a model after its last hidden layer."""

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
    """Turns logits and labels into loss, metrics, predictions and serving signatures.

    `estimator_heads.BaseHead` writes `create_estimator_spec` for heads that define `loss`, `predictions` and `metrics`.

    Source: the class `tf.estimator.Head`.
    """

    @property
    def name(self) -> str | None:
        """Suffix of metric and summary keys (`auc/name`)."""
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
        """The scalar loss, float32, including the regularization losses."""
        ...

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Array]:
        """Predictions by key: those in `keys`, or all."""
        ...

    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Array] | None = None,
    ) -> dict[str, Metric]:
        """Streaming metrics of one batch by key."""
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
        """The EstimatorSpec of one mode."""
        ...
