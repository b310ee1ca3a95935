"""Hooks that watch a run: with every member that a hook had."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.hooks import Hook, Run, StepOutputs
from estimator_core.loop.builtin_hooks.output_names import check_known
from estimator_core.loop.builtin_hooks.timer import SecondOrStepTimer


class Pace(Hook):
    """Notes the mean of some outputs, and how long the steps between two looks took.

    Args:
        names: scalar outputs.
        every: steps between two looks.
        secs: seconds after which it looks in any case.
    """

    def __init__(self, names: Sequence[str] = ("loss",), every: int = 4, secs: float = 60.0) -> None:
        self.names = tuple(names)
        self.every = every
        self.secs = secs
        self.timer = SecondOrStepTimer(every_steps=every)
        self.seen: list[int] = []
        self.means: dict[str, list[float]] = {name: [] for name in self.names}
        self._last: float | None = None

    def after_create(self, run: Run) -> None:
        check_known("Pace", self.names, run.output_names)
        self._last = time.monotonic()

    def values(self) -> Sequence[str]:
        """All of them."""
        return self.names

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        for name, array in values.items():
            self.means[name].append(float(array.mean()))

    def next_step(self, step: int) -> int | None:
        return step - step % self.every + self.every

    def next_time(self) -> float | None:
        """The time of the next look."""
        if self._last is None:
            return None
        return self._last + self.secs

    def slack(self, step: int) -> int:
        """Up to the next look."""
        return self.every - 1

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        self.timer.update_last_triggered_step(step)
        self._last = time.monotonic()
        self.seen.append(step)


class Companion(ec.Hook):
    """Looks whenever another hook has control."""

    comes_along = True

    def __init__(self) -> None:
        self.seen: list[int] = []

    def next_step(self, step: int) -> int | None:
        return None

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        self.on_look(step)

    def on_look(self, step: int) -> None:
        """Notes it."""
        self.seen.append(step)


class LastLook(ec.Hook):
    """Looks when every other hook has seen the step."""

    def __init__(self, other: Pace) -> None:
        self.other = other
        self.agreed = True

    def next_step(self, step: int) -> int | None:
        return self.other.next_step(step)

    def settle(self, run: Run, step: int) -> None:
        """Compares."""
        self.agreed = self.agreed and self.other.seen[-1] == step


class First(ec.Hook):
    """Notes the first loss."""

    first: float | None = None

    def values(self) -> tuple[str, ...]:
        return ("loss",)

    def on_values(self, run: Run, steps: range, values: Mapping[str, Any]) -> None:
        if self.first is None:
            self.first = float(values["loss"][0])
