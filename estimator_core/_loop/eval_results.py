"""Writes the results of an evaluation: a log line, scalars in its event file, and a line of metrics."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._journal.derived import results_line
from estimator_core._journal.entries import Evaluated
from estimator_core._loop.context import RunContext
from estimator_core._loop.result_log import relative_to
from estimator_core._summaries import append_line, open_summary_writer, plain_metrics

_log = logging.getLogger("estimator_core")


def report(context: RunContext, metrics: Mapping[str, Any]) -> None:
    """Logs the metrics of an evaluation, including "global_step"."""
    _log.info(
        "Saving dict for global step %d%s: %s",
        metrics["global_step"],
        "" if context.name is None else f" ({context.name})",
        ", ".join(f"{name} = {value}" for name, value in metrics.items()),
    )
    if not np.isfinite(metrics.get("loss", 0.0)):
        told = "loss = %s at global step %d: a label, a feature or a value inside the model is not finite."
        _log.warning(told, metrics["loss"], metrics["global_step"])


def write_results(context: RunContext, metrics: Mapping[str, Any]) -> None:
    """Writes the metrics of an evaluation, including "global_step", to its directory."""
    step, directory = metrics["global_step"], context.directory
    values = {name: value for name, value in metrics.items() if name != "global_step"}
    if (context.training or context.replaces) and context.results.newest(directory) >= step:
        # This evaluation replaces a recorded one.
        open_summary_writer(directory, resume_step=step - 1)
    for name, value in values.items():
        if np.ndim(value) == 0:
            context.summaries.scalar(name, float(value), step)
        else:
            _log.info(
                "Metric %s has shape %s; TensorBoard shows scalars only, see %s.",
                name,
                np.shape(value),
                directory / "metrics.jsonl",
            )
    model_dir = Path(context.estimator.model_dir)
    path = context.checkpoint or context.results.checkpoint_of(step)
    if path is not None:
        context.summaries.text("checkpoint_path", path, step)
    context.summaries.flush()
    result = Evaluated(
        name=context.name or "",
        step=step,
        metrics=plain_metrics(values),
        checkpoint=relative_to(model_dir, path),
        between=context.training and path is None,
        time=time.time(),
    )
    context.results.record(directory, result)
    append_line(directory, results_line(model_dir, result))
