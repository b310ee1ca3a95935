"""Steps per second, to the log and the event file."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from estimator_core.hooks import Hook, Run, StepOutputs, SummaryWriter
from estimator_core.loop.builtin_hooks.timer import SecondOrStepTimer
from estimator_core.summaries import NO_SUMMARIES, open_summary_writer

_log = logging.getLogger("estimator_core")
TAG = "global_step/sec"


class StepCounterHook(Hook):
    """Writes `global_step/sec`: completed steps over the time they took, since the point before.

    Args:
        every_n_steps: steps between two points.
        every_n_secs: seconds between two points, instead.
        output_dir: directory of the event file; default: the run's.
        summary_writer: writes the points, instead of `output_dir`.

    Raises:
        ArgumentError: both intervals given (`every_n_steps=None` selects seconds).

    Example:
        >>> StepCounterHook(every_n_steps=10).next_step(0)
        1

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
        self._output_dir = output_dir
        self._writer = summary_writer
        self._base: tuple[int, float] | None = None

    def after_create(self, run: Run) -> None:
        """Opens the writer."""
        if not run.resumed:
            self._timer.reset()
        self._base = None
        if self._writer is None:
            directory = self._output_dir
            self._writer = run.summaries if directory is None else open_summary_writer(directory, resume_step=run.step)

    def next_step(self, step: int) -> int | None:
        """The first step, from which the rate is measured, then the timer's."""
        return step + 1 if self._base is None else self._timer.next_step(step)

    def next_time(self) -> float | None:
        """The timer's."""
        return self._timer.next_time()

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes the rate; the first call only starts the clock."""
        due = self._timer.should_trigger_for_step(step)
        if not due and self._base is not None:
            return
        if "loss" in run.output_names:
            _ = out["loss"]  # waits until the step is done: a dispatch returns before it
        now = time.monotonic()
        if due:
            self._timer.update_last_triggered_step(step)
        if self._base is not None and step > self._base[0]:
            rate = (step - self._base[0]) / (now - self._base[1])
            _log.info("%s: %.6g", TAG, rate)
            (self._writer or NO_SUMMARIES).scalar(TAG, rate, step)
        self._base = (step, now)

    def state(self) -> Mapping[str, Any]:
        """The cadence; the event file is complete up to here."""
        if self._output_dir is not None and self._writer is not None:
            self._writer.flush()
        return self._timer.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state)
