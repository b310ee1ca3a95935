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
        wait_after_file_check_secs: has no effect, because all processes run the same steps and do not wait for files.

    Raises:
        ArgumentTypeError: `estimator` is not an Estimator.
        ArgumentError: `last_step` is missing.

    Source: `tf.estimator.experimental.make_stop_at_checkpoint_step_hook`.
    """
    check_estimator(estimator)
    return StopAtStepHook(last_step=last_step)
