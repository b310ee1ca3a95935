"""The contract of tasks, and their common part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import jax.numpy as jnp

import estimator_core as ec


class Task(Protocol):
    """The loss, predictions, metrics and exports of one kind of output."""

    @property
    def outputs(self) -> int:
        """The size of the last axis of the logits."""
        ...

    def loss(self, logits: Any, labels: Any) -> Any:
        """Returns the scalar loss. Rows of padding do not count."""
        ...

    def predictions(self, logits: Any) -> dict[str, Any]:
        """Returns the predictions by key, each with a leading batch axis."""
        ...

    def metrics(self, logits: Any, labels: Any) -> dict[str, Any]:
        """Returns the streaming metrics by name."""
        ...

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the signatures of an export by name."""
        ...


def weighted_mean(values: Any, weights: Any = None) -> Any:
    """Returns `sum(weights * values) / sum(weights)` over the examples of the batch. Rows of padding have no weight."""
    mask = ec.example_weights()
    if weights is None and mask is None:
        return jnp.mean(values)
    each = jnp.ones_like(values) if weights is None else weights
    if mask is not None:
        each = each * mask
        values = jnp.where(mask > 0, values, 0.0)
    return jnp.sum(values * each) / jnp.maximum(jnp.sum(each), 1e-30)
