"""`ProgressBarHook`."""

from __future__ import annotations

import time
from typing import TextIO

import numpy as np

from estimator_core.hooks import Hook, Run, StepOutputs, Wake
from estimator_core.modes import ModeKeys
from estimator_hooks.progress.display import Shown, shared
from estimator_hooks.progress.figures import Figures, Pace
from estimator_hooks.progress.waiting import (
    COMPILING,
    FIRST_BATCH,
    Key,
    end_waiting,
    key_of,
    shown_elsewhere,
    title,
    waiting,
)

#: The hook that shows a run, by the key of the run. The last hook in the list of the run wins.
_chosen: dict[Key, ProgressBarHook] = {}


class ProgressBarHook(Hook):
    """Shows the number of steps, the loss, the speed and the remaining time, and evaluations during training.

    The speed is in steps and examples per second.

    In a terminal, bars are redrawn four times per second. Elsewhere, a line is written every ten seconds. Between two
    readings the hook costs nothing. If estimator-hooks is installed, every `train` and `evaluate` call has this hook.
    An explicitly passed one replaces it.

    Args:
        output: the stream to write to. Default: stderr.

    Example:
        >>> ProgressBarHook().next_step(0) is None  # no run to show yet
        True
    """

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = output
        self._shown: Shown | None = None
        self._key: Key | None = None
        self._pace = Pace()
        self._began: float | None = None
        self._loss: tuple[int, float] | None = None  # the step and the loss
        self._next_time: float | None = None
        self._total: int | None = None
        self._batch_size = 0

    def begin(self, run: Run) -> None:
        """Replaces a progress hook that is earlier in the list."""
        self._key = key_of(run)  # another thread may end predictions
        _chosen[self._key] = self
        if self._output is None:
            _tell(run, FIRST_BATCH)
        else:
            shown_elsewhere(run)
        self._shown, self._began, self._loss, self._next_time = None, None, None, None
        self._pace, self._batch_size = Pace(), 0

    def after_create(self, run: Run) -> None:
        """Shows the call."""
        if _chosen.get(key_of(run)) is not self:
            return
        self._total = run.last_step
        _tell(run, COMPILING)
        found = waiting(run)
        self._shown = shared.open(self._output, title(run)) if found is None else found.shown

    def next_step(self, step: int) -> int | Wake | None:
        """Returns the first step, then the time of the next reading, and the last step."""
        if self._shown is None:
            return None
        if self._began is None:
            return step + 1
        last = self._total if self._total is not None and step < self._total else None
        return Wake(step=last, time=self._next_time)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Reads the loss and shows the figures."""
        if self._shown is None:
            return
        if run.mode == ModeKeys.TRAIN:  # the loss of an evaluation is not known before its end
            self._loss = step, float(np.asarray(out["loss"]))  # waits until the step is done
        if self._began is None:
            end_waiting(run)
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        self._pace.add(now, step)
        self._next_time = now + self._shown.display.refresh_secs
        self._shown.show(self._figures(run, step, now))

    def end(self, run: Run) -> None:
        """Shows the call for the last time."""
        if self._key is not None and _chosen.get(self._key) is self:
            del _chosen[self._key]
        if self._shown is None:
            return
        end_waiting(run)
        now = time.monotonic()
        if self._pace.steps_per_sec is None:
            self._pace.add(now, run.step)
        figures = None if self._began is None else self._figures(run, run.step, now)
        self._shown.close(figures)
        self._shown, self._next_time = None, None

    def _figures(self, run: Run, step: int, now: float) -> Figures:
        rate = self._pace.steps_per_sec
        self._batch_size = max(self._batch_size, run.batch_size)  # the last batch of an input may be short
        return Figures(
            done=step,
            total=self._total,
            loss=self._loss[1] if self._loss is not None and self._loss[0] == step else None,
            steps_per_sec=rate,
            examples_per_sec=None if rate is None else rate * self._batch_size,
            secs_left=None if not rate or self._total is None else max(0, self._total - step) / rate,
            elapsed=now - (now if self._began is None else self._began),
            cut_short=run.failed or run.interrupted,
        )


def _tell(run: Run, stage: str) -> None:
    found = waiting(run)
    if found is not None:
        found.at(stage)
