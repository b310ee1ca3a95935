"""Calls a function at intervals to decide whether to stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimator_core.builtin_hooks import SecondOrStepTimer, checked_interval
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.hooks import Hook, Run, StepOutputs, Wake
from estimator_hooks.early_stopping.agreement import is_alone, same_on_all_processes

DEFAULT_SECS = 60.0


class StopOnPredicateHook(Hook):
    """Requests a stop when `should_stop_fn()` is true.

    Args:
        should_stop_fn: a function without arguments, called at every interval.
        run_every_secs: the seconds between calls. Default: 60, unless `run_every_steps` is set.
        run_every_steps: the steps between calls. Required with several processes, which must all decide at the same
            step.

    Raises:
        ArgumentTypeError: `should_stop_fn` is not a function, or the interval is not a number.
        ArgumentError: both intervals are set, or the interval is not positive.

    Source: `tf.estimator.experimental.make_early_stopping_hook`.
    """

    def __init__(
        self,
        should_stop_fn: Callable[[], bool],
        run_every_secs: float | None = None,
        run_every_steps: int | None = None,
    ) -> None:
        if not callable(should_stop_fn):
            raise ArgumentTypeError("`should_stop_fn` must be callable.")
        if run_every_secs is not None and run_every_steps is not None:
            raise ArgumentError("Only one of `run_every_secs` and `run_every_steps` must be set.")
        if run_every_steps is None and run_every_secs is None:
            run_every_secs = DEFAULT_SECS
        self._should_stop_fn = should_stop_fn
        self._by_clock = run_every_steps is None
        interval = checked_interval(self, ("run_every_secs", run_every_secs), ("run_every_steps", run_every_steps))
        self._timer = SecondOrStepTimer(*interval)

    def after_create(self, run: Run) -> None:
        """Starts the cadence, or continues the one of the interrupted call."""
        if self._by_clock and not is_alone():
            raise ArgumentError(
                "run_every_secs should not be set when several processes train: they must check at the same step. Use "
                "run_every_steps."
            )
        if not run.resumed:
            self._timer.reset()

    def next_step(self, step: int) -> Wake:
        """Returns the next step of the timer."""
        return Wake(step=self._timer.next_step(step), time=self._timer.next_time())

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Calls the function when the timer is due."""
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if same_on_all_processes(bool(self._should_stop_fn())):
                run.request_stop(f"early stopping at step {step}, requested by {_name(self._should_stop_fn)}")

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence.

        It does not record that a run was stopped, because the user decides whether to train again.
        """
        return self._timer.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
