"""Keeps the scalars of every hundredth step, and of the last, in `estimator.history`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_core.hooks import Hook, Run, StepOutputs
from estimator_core.loop.history import History


class HistoryRecorderHook(Hook):
    """Adds a row to the history every so many steps, counted from step 0, and at the last step if that is known.

    Args:
        history: gets the rows.
        every_n_steps: steps between rows.
    """

    def __init__(self, history: History, every_n_steps: int) -> None:
        self._history = history
        self._every = every_n_steps
        self._last_step: int | None = None
        self._scalars: list[str] = []

    def after_create(self, run: Run) -> None:
        """Learns the names of the scalars."""
        self._last_step = run.last_step
        self._scalars = [name for name, kind in run.output_kinds.items() if kind in ("scalar", "metric")]

    def next_step(self, step: int) -> int | None:
        """The next multiple, or the last step."""
        due = (step // self._every + 1) * self._every
        return min(due, self._last_step) if self._last_step is not None and step < self._last_step else due

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Adds a row."""
        values: Mapping[str, Any] = {name: out[name] for name in self._scalars if name in out}
        self._history.train.append(
            {"step": step, **{name: float(value) for name, value in values.items() if np.ndim(value) == 0}}
        )
