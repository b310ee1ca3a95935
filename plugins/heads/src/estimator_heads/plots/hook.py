"""The hook that collects labels and scores of an evaluation and draws its plots at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

import estimator_core as ec
from estimator_core.errors import ModelFnError
from estimator_core.metrics import example_weights
from estimator_heads.metrics.auc import auc
from estimator_heads.metrics.calibration import calibration_error
from estimator_heads.metrics.multiclass import confusion_matrix
from estimator_heads.plots import figures

if TYPE_CHECKING:
    from estimator_core.hooks import Run, StepOutputs
    from estimator_core.metrics import Metric


class PlotHook(ec.Hook):
    """Draws the confusion matrix and the calibration; for two classes ROC and precision-recall, too.

    It reads three named tensors of each batch, and keeps only metrics of them. The images go to the event file of the
    evaluation
    as `plots[/<head>]/<plot>`.

    Args:
        prefix: what the tensors' names begin with.
        names: of the classes.
        head: name of the head, or None.
    """

    def __init__(self, prefix: str, names: tuple[str, ...], head: str | None) -> None:
        self._names = names
        self._tensors = {part: f"{prefix}/{part}" for part in ("labels", "scores", "weights")}
        self._tag = f"plots/{head}" if head else "plots"
        self._metrics: dict[str, Metric] | None = None
        self._step = 0
        self._update = jax.jit(self._batch_metrics)

    def begin(self, run: Run) -> None:
        """Asks for the tensors."""
        self._metrics = None
        for name in self._tensors.values():
            run.fetch(name)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Adds a batch."""
        batch = {part: out[name] for part, name in self._tensors.items()}
        new = self._update(**batch)
        self._metrics = new if self._metrics is None else ec.metrics.merge_metrics(self._metrics, new)

    def end(self, run: Run) -> None:
        """Draws."""
        if self._metrics is None:
            return
        for plot, pixels in self._draw(jax.device_get(self._metrics)).items():
            run.summaries.image(f"{self._tag}/{plot}", pixels, run.step)

    def _batch_metrics(self, labels: jax.Array, scores: jax.Array, weights: jax.Array) -> dict[str, Metric]:
        if len(self._names) == 2:
            called, actual = (scores > 0.5).astype(jnp.int32), (labels > 0.5).astype(jnp.int32)
            found: dict[str, Metric] = {
                "roc": auc(labels, scores, weights),
                "calibration": calibration_error(labels, scores, weights),
            }
        else:
            called, actual = jnp.argmax(scores, axis=-1, keepdims=True), labels.astype(jnp.int32)
            right = (called == actual).astype(jnp.float32)
            found = {"calibration": calibration_error(right, jnp.max(scores, axis=-1, keepdims=True), weights)}
        return {"confusion_matrix": confusion_matrix(actual, called, len(self._names), weights), **found}

    def _draw(self, metrics: dict[str, Any]) -> dict[str, Any]:
        matrix, calibration = metrics["confusion_matrix"].compute(), metrics["calibration"]
        weight, probability, outcome = calibration.bins()
        drawn = {
            "confusion_matrix": figures.confusion_matrix_figure(matrix, self._names),
            "calibration": figures.calibration_figure(weight, probability, outcome, calibration.compute()),
        }
        if "roc" in metrics:
            roc = metrics["roc"]
            counts, pr = roc.at_thresholds(), replace(roc, curve="PR")
            drawn["roc"] = figures.roc_figure(counts.false_positive_rate, counts.recall, roc.compute())
            drawn["precision_recall"] = figures.precision_recall_figure(counts.recall, counts.precision, pr.compute())
        return drawn


def plot_hooks(
    head: str | None, names: tuple[str, ...], *, labels: jax.Array, scores: jax.Array, weights: jax.Array | None
) -> tuple[PlotHook, ...]:
    """Names the tensors a PlotHook reads, and gives the hook; nothing outside a model_fn.

    Raises:
        PluginError: matplotlib is not installed.
    """
    figures.require_matplotlib()
    prefix = f"plots/{head}" if head else "plots"
    each = jnp.ones(labels.shape, jnp.float32) if weights is None else jnp.broadcast_to(weights, labels.shape)
    mask = example_weights()
    if mask is not None:
        each = each * mask.reshape((-1,) + (1,) * (labels.ndim - 1))
    try:
        for part, value in (("labels", labels), ("scores", scores), ("weights", each)):
            ec.tensor(f"{prefix}/{part}", value)
    except ModelFnError:
        return ()
    return (PlotHook(prefix, names, head),)
