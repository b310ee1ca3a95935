"""Steps per second, to the log and the event file."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from estimator_core._builtin_hooks.hook_writer import HookWriter
from estimator_core._builtin_hooks.timer import SecondOrStepTimer
from estimator_core.hooks import Hook, Run, StepOutputs, SummaryWriter, Wake

_log = logging.getLogger("estimator_core")
TAG = "global_step/sec"


class StepCounterHook(Hook):
    """Writes `global_step/sec`: completed steps over the time they took, since the point before.

    The first step of a call, which compiles, is not counted.

    Args:
        every_n_steps: steps between two points.
        every_n_secs: seconds between two points, instead.
        output_dir: directory of the event file; default: the run's.
        summary_writer: writes the points, instead of `output_dir`.

    Raises:
        ArgumentError: both intervals given (`every_n_steps=None` selects seconds).

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
        self._timer = SecondOrStepTimer(every_steps=every_n_steps, every_secs=every_n_secs)
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
        """The first step, from which the rate is measured, then the timer's: only outputs and the clock are read."""
        wake = self._timer.wake(step)
        return wake if self._base is not None else replace(wake, step=step + 1, within=0)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes the rate; the first call only starts the clock."""
        due = self._timer.should_trigger_for_step(step)
        if not due and self._base is not None:
            return
        if "loss" in run.output_names:
            _ = out["loss"]  # waits until the step is done: a dispatch returns before it
        if due:
            steps, secs = self._measured(step)
            self._timer.update_last_triggered_step(step)
            if steps and secs > 0:
                _log.info("%s: %.6g", TAG, steps / secs)
                self._writer.scalar(TAG, steps / secs, step)
            self._carried = (0, 0.0)
        self._base = (step, time.monotonic())

    def end(self, run: Run) -> None:
        """Closes its own event file."""
        self._writer.close()

    def state(self) -> Mapping[str, Any]:
        """The cadence, and what was measured since the last point; the event file is complete up to here."""
        self._writer.flush()
        steps, secs = self._measured(0 if self._run is None else self._run.step)
        return {"timer": dict(self._timer.state()), "steps": steps, "secs": secs}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state["timer"])
        self._carried = (int(state["steps"]), float(state["secs"]))

    def _measured(self, step: int) -> tuple[int, float]:
        """Steps and seconds since the last point; those of an interrupted call count, the time between does not."""
        steps, secs = self._carried
        if self._base is None:
            return steps, secs
        return steps + step - self._base[0], secs + time.monotonic() - self._base[1]
