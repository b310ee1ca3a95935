"""The task of one number per example, as in STS-B."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

import estimator_core as ec
from estimator_canned_bert.tasks.task import weighted_mean


class Regression:
    """Predicts one number, with squared error.

    Example:
        >>> float(Regression().loss(jnp.array([[1.0], [2.0]]), jnp.array([1.0, 4.0])))
        2.0
    """

    outputs = 1

    def loss(self, logits: Any, labels: Any) -> Any:
        """Returns the mean squared error."""
        return weighted_mean(self._losses(logits, labels))

    def predictions(self, logits: Any) -> dict[str, Any]:
        """Returns `predictions`: the numbers [batch]."""
        return {"predictions": logits[:, 0]}

    def metrics(self, logits: Any, labels: Any) -> dict[str, Any]:
        """Returns `eval_loss`, `eval_pearson` and `eval_spearman`."""
        numbers = jnp.asarray(labels, jnp.float32).reshape(-1)
        return {
            "eval_loss": ec.metrics.mean(self._losses(logits, labels)),
            "eval_pearson": ec.metrics.on_host(pearson, labels=numbers, predictions=logits[:, 0]),
            "eval_spearman": ec.metrics.on_host(spearman, labels=numbers, predictions=logits[:, 0]),
        }

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the signature `serving_default` with the number."""
        return {"serving_default": ec.export.RegressionOutput(predictions["predictions"])}

    def _losses(self, logits: Any, labels: Any) -> Any:
        numbers = jnp.asarray(labels, jnp.float32).reshape(-1)
        return jnp.square(logits[:, 0].astype(jnp.float32) - numbers)


def pearson(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Returns the linear correlation, or 0 if one side does not vary.

    Example:
        >>> round(pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])), 6)
        1.0
    """
    first, second = (np.asarray(values, np.float64) - np.mean(values) for values in (labels, predictions))
    scale = float(np.sqrt(np.sum(first**2) * np.sum(second**2)))
    return float(np.sum(first * second)) / scale if scale > 0 else 0.0


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Returns the correlation of the ranks. Equal values share their mean rank.

    Example:
        >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 20.0, 300.0])), 6)
        1.0
    """
    return pearson(_ranks(labels), _ranks(predictions))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
