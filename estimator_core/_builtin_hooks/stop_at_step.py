"""Ends training at a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_core._builtin_hooks.hook_parts import whole_steps
from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook, Run, StepOutputs


class StopAtStepHook(Hook):
    """Requests a stop at a global step. In an evaluation or prediction, the steps are its batches.

    If the step is already reached when the call starts, the call runs no step.

    Args:
        num_steps: the steps to run, counted from the global step at which the call starts. A call that resumes an
            interrupted one runs the rest of them. tf.estimator counts only from the first call of the object.
        last_step: the global step at which to stop. Set exactly one of the two.

    Raises:
        ArgumentError, ArgumentTypeError: neither or both are set, or the number is negative, or not whole.

    Example:
        >>> hook = StopAtStepHook(last_step=100)
        >>> hook.next_step(20)
        100

    Source: `tf.compat.v1.train.StopAtStepHook`.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ArgumentError("StopAtStepHook: one of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ArgumentError("StopAtStepHook: only one of num_steps or last_step can be specified.")
        self._num_steps = None if num_steps is None else whole_steps(self, "num_steps", num_steps, least=0)
        self._last_step = None if last_step is None else whole_steps(self, "last_step", last_step, least=0)

    def after_create(self, run: Run) -> None:
        """Determines the step at which to stop."""
        if self._num_steps is not None and not (run.resumed and self._last_step is not None):
            self._last_step = run.step + self._num_steps
        self._stop_if_reached(run)

    def next_step(self, step: int) -> int | None:
        """Returns the last step."""
        assert self._last_step is not None
        return max(self._last_step, step + 1)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Requests the stop."""
        self._stop_if_reached(run)

    def state(self) -> Mapping[str, Any]:
        """Returns the step at which to stop."""
        return {"last_step": self._last_step}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the step at which to stop, if it was counted from the start of the interrupted call."""
        if self._num_steps is not None:
            self._last_step = state["last_step"]

    def _stop_if_reached(self, run: Run) -> None:
        assert self._last_step is not None
        if run.step >= self._last_step:
            run.request_stop(f"reached step {self._last_step}")
