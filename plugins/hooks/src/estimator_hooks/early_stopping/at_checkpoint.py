"""Stopping every process at one step."""

from __future__ import annotations

from typing import Any

from estimator_core.builtin_hooks import StopAtStepHook
from estimator_core.hooks import Hook
from estimator_hooks.early_stopping.factories import check_estimator


def make_stop_at_checkpoint_step_hook(estimator: Any, last_step: int, wait_after_file_check_secs: float = 30) -> Hook:
    """Returns a hook that stops training at a step, on every process.

    Args:
        estimator: the Estimator that trains.
        last_step: the global step to stop at.
        wait_after_file_check_secs: without effect: all processes make the same steps, so none has to wait for a file.

    Raises:
        ArgumentTypeError: no Estimator.
        ArgumentError: no `last_step`.

    Source: `tf.estimator.experimental.make_stop_at_checkpoint_step_hook`.
    """
    check_estimator(estimator)
    return StopAtStepHook(last_step=last_step)
