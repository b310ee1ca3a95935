"""Base class of hooks that log scalar outputs and write them to the event file."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_core.builtin_hooks import PresentNames, SecondOrStepTimer, point_step, whole_steps
from estimator_core.hooks import Hook, Run, StepOutputs, Wake

_log = logging.getLogger("estimator_hooks")


class ScalarWriterHook(Hook):
    """Logs outputs at the first step and at intervals, and writes them to the event file of the run.

    Args:
        every_n_steps: steps between two points.
    """

    def __init__(self, every_n_steps: int = 100) -> None:
        self._timer = SecondOrStepTimer(every_steps=whole_steps(self, "every_n_steps", every_n_steps))
        self._names: list[str] = []
        self._present = PresentNames(type(self).__name__)

    def output_names(self, run: Run) -> list[str]:
        """Returns the names of the outputs to write."""
        raise NotImplementedError

    def after_create(self, run: Run) -> None:
        """Starts the cadence, or continues the one of the interrupted call."""
        if not run.resumed:
            self._timer.reset()
        self._names = self.output_names(run)

    def next_step(self, step: int) -> Wake:
        """Returns the next step of the timer. The hook reads only outputs."""
        return self._timer.wake(step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes one point of each output."""
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        values = {name: float(np.asarray(out[name])) for name in self._present.of(self._names, out, step)}
        _log.info("%s, step = %d", ", ".join(f"{name} = {value:.6g}" for name, value in values.items()), step)
        kinds = run.output_kinds
        for name, value in values.items():
            # SummarySaverHook writes all scalars. A second point of the same step would appear as a duplicate.
            if not (run.config.save_summary_steps and kinds.get(name) == "scalar"):
                run.summaries.scalar(name, value, point_step(run, step))

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence."""
        return self._timer.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state)
