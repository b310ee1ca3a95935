"""The history of an Estimator: rows of training, and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from estimator_core._builtin_hooks.hook_parts import SecondOrStepTimer, at_most, whole_steps
from estimator_core.hooks import Hook, Run, StepOutputs, Wake


@dataclass
class History:
    """Rows of values, oldest first. `pandas.DataFrame(history.train)` converts them to a table.

    Attributes:
        train: `{"step", "loss", ...}` at every `log_step_count_steps`, and at the last step.
        evaluations: `{"name", "global_step", metric: value, ...}` for every evaluation.
        stop_reason: the reason why the last `train` call ended.

    Example:
        >>> history = History()
        >>> history.add_evaluation(None, {"global_step": 10, "accuracy": 0.9})
        >>> history.evaluations
        [{'name': None, 'global_step': 10, 'accuracy': 0.9}]
    """

    train: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    evaluations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    stop_reason: str | None = None

    def add_evaluation(self, name: str | None, metrics: Mapping[str, object]) -> None:
        """Adds one evaluation."""
        self.evaluations.append({"name": name, **metrics})


class HistoryRecorderHook(Hook):
    """Adds a row to the history at the first step, at a cadence of steps, and at the last step if that is known.

    The other hooks use the same steps, so that long dispatches are interrupted only once for all of them.

    Args:
        history: the history that receives the rows.
        every_n_steps: the steps between two rows.
    """

    def __init__(self, history: History, every_n_steps: int) -> None:
        self._history = history
        self._timer = SecondOrStepTimer(every_steps=whole_steps(self, "every_n_steps", every_n_steps))
        self._last_step: int | None = None
        self._scalars: list[str] = []

    def after_create(self, run: Run) -> None:
        """Determines the names of the scalars."""
        if not run.resumed:
            self._timer.reset()
        self._last_step = run.last_step
        self._scalars = [name for name, kind in run.output_kinds.items() if kind in ("scalar", "metric")]

    def next_step(self, step: int) -> Wake:
        """Returns the timer's next step, or the last step.

        The hook only reads outputs, so it may wait for the next trigger.
        """
        wake = self._timer.wake(step)
        return replace(wake, step=at_most(wake.step, self._last_step, step))

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Adds a row."""
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
        elif step != self._last_step:
            return
        values: Mapping[str, Any] = {name: out[name] for name in self._scalars if name in out}
        self._history.train.append(
            {"step": step, **{name: float(value) for name, value in values.items() if np.ndim(value) == 0}}
        )

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence."""
        return self._timer.state()

    def restore(self, state: Mapping[str, object]) -> None:
        """Continues the cadence."""
        self._timer.restore(state)
