"""A regression whose model predicts normalised labels, so that large and small labels are learned equally fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.lax import stop_gradient

from estimator_heads import RegressionHead


class ScaledRegressionHead(RegressionHead):
    """Predictions, losses and metrics have the unit of the labels. The logits are `(label - mean) / scale`.

    Args:
        mean: the mean of the labels.
        scale: the standard deviation of the labels.
        weight_column: the name of the weight feature.

    Example:
        >>> head = ScaledRegressionHead(mean=4000.0, scale=800.0)
        >>> head.predictions(jax.numpy.array([[0.0], [1.0]]))["predictions"].tolist()
        [[4000.0], [4800.0]]
    """

    def __init__(self, *, mean: float, scale: float, weight_column: str | None = None) -> None:
        super().__init__(weight_column=weight_column)
        self._mean = mean
        self._scale = scale

    def example_loss(self, labels: jax.Array, logits: jax.Array) -> jax.Array:
        """Returns the squared error of each output. Its gradient is that of the normalised error."""
        normalised = super().example_loss((labels - self._mean) / self._scale, logits)
        return stop_gradient(normalised * self._scale**2) + (normalised - stop_gradient(normalised))

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions by key."""
        return super().predictions(logits * self._scale + self._mean, keys)
