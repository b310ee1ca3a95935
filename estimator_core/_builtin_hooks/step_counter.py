"""Measures the steps per second of a run."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from estimator_core._builtin_hooks.hook_parts import HookWriter, SecondOrStepTimer, checked_interval, point_step
from estimator_core.hooks import Hook, Run, StepOutputs, SummaryWriter, Wake

_log = logging.getLogger("estimator_core")
TAG = "global_step/sec"


class StepCounterHook(Hook):
    """Writes `global_step/sec`: the steps per second since the previous point.

    The first step of a call, which compiles, is not counted. The steps of an evaluation are batches. Its points are at
    the global step of its weights.

    Args:
        every_n_steps: the steps between two points.
        every_n_secs: the seconds between two points, instead of steps.
        output_dir: the directory of the event file. Default: the directory of the run. Of several processes, only the
            chief writes.
        summary_writer: the writer of the points, instead of `output_dir`.

    Raises:
        ArgumentError, ArgumentTypeError: both intervals are set (`every_n_steps=None` selects seconds), or the
            interval is not a positive number.

    Example:
        >>> StepCounterHook(every_n_steps=10).next_step(0)
        Wake(step=1, time=None, within=0, joins=False)

    Source: `tf.compat.v1.train.StepCounterHook`.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: SummaryWriter | None = None,
    ) -> None:
        interval = checked_interval(self, ("every_n_secs", every_n_secs), ("every_n_steps", every_n_steps))
        self._timer = SecondOrStepTimer(*interval)
        self._writer = HookWriter(output_dir, summary_writer)
        self._run: Run | None = None
        self._base: tuple[int, float] | None = None
        self._carried = (0, 0.0)

    def after_create(self, run: Run) -> None:
        """Opens the writer."""
        self._run, self._base = run, None
        if not run.resumed:
            self._timer.reset()
            self._carried = (0, 0.0)
        self._writer.open(run)

    def next_step(self, step: int) -> Wake:
        """Returns the first step, at which the measurement starts, then the steps of the timer.

        The hook reads only outputs and the clock.
        """
        wake = self._timer.wake(step)
        return wake if self._base is not None else replace(wake, step=step + 1, within=0)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes the rate. The first call only starts the clock."""
        due = self._timer.should_trigger_for_step(step)
        if not due and self._base is not None:
            return
        if "loss" in run.output_names:
            _ = out["loss"]  # waits until the step is done, because a dispatch returns before it
        if due:
            steps, secs = self._measured(step)
            self._timer.update_last_triggered_step(step)
            if steps and secs > 0:
                _log.info("%s: %.6g", TAG, steps / secs)
                self._writer.to.scalar(TAG, steps / secs, point_step(run, step))
            self._carried = (0, 0.0)
        self._base = (step, time.monotonic())

    def end(self, run: Run) -> None:
        """Closes the hook's own event file."""
        self._writer.close()

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence and the measurement since the last point, with a complete event file."""
        self._writer.flush()
        steps, secs = self._measured(0 if self._run is None else self._run.step)
        return {"timer": dict(self._timer.state()), "steps": steps, "secs": secs}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state["timer"])
        self._carried = (int(state["steps"]), float(state["secs"]))

    def _measured(self, step: int) -> tuple[int, float]:
        """Returns the steps and seconds since the last point, including those of an interrupted call, without the time
        between the calls.
        """
        steps, secs = self._carried
        if self._base is None:
            return steps, secs
        return steps + step - self._base[0], secs + time.monotonic() - self._base[1]
