"""The declarations of estimator-hooks for estimator-core. They are imported at start-up, so keep this module light."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimator_core.plugins import Component

if TYPE_CHECKING:
    from estimator_core.hooks import Hook, Run

ESTIMATOR_PLUGIN_API = (1, 2)

_HOOKS = (
    ("device_memory", "DeviceMemoryHook", "Bytes in use on the devices, to the log and the event file."),
    ("goodput", "GoodputHook", "Where the time of training went, at its end."),
    ("gradient_norm", "GradientNormHook", "The norm of the gradients, to the log and the event file."),
    ("graph", "GraphHook", "The variables of the model in their blocks, for TensorBoard's page GRAPHS."),
    ("history", "HistoryHook", "All scalars, as CSV and JSON lines."),
    ("hparams", "HParamsHook", "The hyperparameters, for TensorBoard's page HPARAMS."),
    ("learning_rate", "LearningRateHook", "The learning rates, to the log and the event file."),
    (
        "parameter_summary",
        "ParameterSummaryHook",
        "Parameters by part of the model and the work of a step, at the start.",
    ),
    ("progress_bar", "ProgressBarHook", "Steps, loss, rate and time left, in a terminal or as lines."),
    ("stall_watchdog", "StallWatchdogHook", "The stacks of all threads when no step finishes."),
    ("throughput", "ThroughputHook", "Examples a second, to the log and the event file."),
    (
        "variable_histograms",
        "VariableHistogramsHook",
        "The distribution of each variable over the steps, for TensorBoard's page HISTOGRAMS.",
    ),
)


def estimator_components() -> Sequence[Component]:
    """Returns the hooks by name. Also registers the tables for objects of the core in a notebook."""
    if "IPython" in sys.modules:
        from estimator_hooks.notebook import register

        register()
    return [
        Component(kind="hook", name=name, target=f"estimator_hooks:{target}", summary=summary)
        for name, target, summary in _HOOKS
    ]


def estimator_capabilities() -> Sequence[str]:
    """Declares that this package adds hooks: the progress in a terminal, and the hyperparameters in TensorBoard."""
    return ["adds_hooks"]


def estimator_run_hooks(run: Run) -> Sequence[Hook]:
    """Returns the hooks for the progress of training and evaluation, and for the hyperparameters of a training run.

    The core adds the log lines, the summaries and the NaN check.
    """
    from estimator_hooks.progress import ProgressBarHook
    from estimator_hooks.progress.display import Nowhere

    if _shows(run):
        return [ProgressBarHook(), *_hparams(run)]
    # Several processes need the same hooks, even if only one of them shows nothing.
    quiet = run.mode != "infer" and run.config.process_group is not None
    return [*([ProgressBarHook(Nowhere())] if quiet else []), *_hparams(run)]


def _hparams(run: Run) -> Sequence[Hook]:
    if run.mode != "train" or not run.config.save_summary_steps:
        return []
    from estimator_hooks.tensorboard.hparams import HParamsHook, plain_hparams

    hparams = plain_hparams(run.params)
    return [HParamsHook(hparams)] if hparams else []


def estimator_run_start(run: Run) -> None:
    """Shows the stage of a call before its first step, from the start of the call."""
    if _shows(run):
        from estimator_hooks.notebook.register import register_run
        from estimator_hooks.progress.waiting import begin_waiting

        register_run(run.estimator)
        begin_waiting(run)


def estimator_run_end(run: Run) -> None:
    """Removes the display of a call that ended before its first step."""
    if _shows(run):
        from estimator_hooks.progress.waiting import forget

        forget(run)


def _shows(run: Run) -> bool:
    return run.mode != "infer" and os.environ.get("ESTIMATOR_QUIET") != "1"
