"""Waits for another process to reach a step."""

from __future__ import annotations

import logging
import math
import time

from estimator_core.builtin_hooks import positive_secs, whole_steps
from estimator_core.checkpoint import checkpoint_step, latest_checkpoint
from estimator_core.errors import HookError
from estimator_core.hooks import Hook, Run

_log = logging.getLogger("estimator_hooks")
_POLL_SECS = 0.5
_REPORT_SECS = 60.0


class GlobalStepWaiterHook(Hook):
    """Delays a call before its first batch until the newest checkpoint of its model_dir has reached a step.

    Use it for an evaluation or prediction that depends on another training process.

    Args:
        wait_until_step: the global step to wait for.
        timeout_secs: the longest time to wait, in seconds. None sets no limit.

    Raises:
        ArgumentError, ArgumentTypeError: a number is negative, NaN or not a number, or the step is not whole.
        HookError: the time has expired; raised in the run.

    Example:
        >>> hook = GlobalStepWaiterHook(wait_until_step=1000)

    Source: `tf.compat.v1.train.GlobalStepWaiterHook`, which watches the step of the parameter servers.
    """

    def __init__(self, wait_until_step: int, timeout_secs: float | None = None) -> None:
        self._wait_until_step = whole_steps(self, "wait_until_step", wait_until_step, least=0)
        # 0 is the shortest limit.
        self._timeout_secs = positive_secs(self, "timeout_secs", timeout_secs) if timeout_secs else timeout_secs

    def begin(self, run: Run) -> None:
        """Waits until the newest checkpoint has the step."""
        began = time.monotonic()
        reported = -math.inf
        model_dir = run.estimator.model_dir
        while run.step < self._wait_until_step:
            path = latest_checkpoint(model_dir)
            step = 0 if path is None else checkpoint_step(path)
            if step >= self._wait_until_step:
                return
            now = time.monotonic()
            if self._timeout_secs is not None and now - began >= self._timeout_secs:
                raise HookError(
                    f"GlobalStepWaiterHook: waited {now - began:.0f} seconds for step {self._wait_until_step}; "
                    f"the newest checkpoint of {model_dir} is at step {step}. Is the training process running?"
                )
            if now - reported >= _REPORT_SECS:
                reported = now
                _log.info("Waiting for step %d; %s is at step %d.", self._wait_until_step, model_dir, step)
            time.sleep(_POLL_SECS)
