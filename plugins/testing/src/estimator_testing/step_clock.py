"""A clock that the steps of a driven run move, and nothing else."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from unittest import mock


class StepClock:
    """Time that stands still between steps.

    In `shown()`, `time.time`, `monotonic` and `perf_counter` show it, and `time.sleep` moves it. Other threads see the
    same time, and their sleep is real: a thread that a test before this one left would move the clock of this one.

    Args:
        seconds_per_step: how far a step moves it.
        monotonic: what `time.monotonic` shows at first; that of another process is unrelated.
        now: what `time.time` shows at first.

    Example:
        >>> clock = StepClock(seconds_per_step=2.0, monotonic=10.0)
        >>> with clock.shown():
        ...     clock.tick(3)
        ...     print(time.monotonic())
        16.0
    """

    def __init__(self, *, seconds_per_step: float = 1.0, monotonic: float = 1000.0, now: float = 1.7e9) -> None:
        self._per_step = seconds_per_step
        self._monotonic, self._now, self._passed = monotonic, now, 0.0

    def tick(self, steps: int = 1) -> None:
        """Lets the time of so many steps pass."""
        self._passed += steps * self._per_step

    def monotonic(self) -> float:
        """What `time.monotonic` and `time.perf_counter` show."""
        return self._monotonic + self._passed

    def time(self) -> float:
        """What `time.time` shows."""
        return self._now + self._passed

    @contextlib.contextmanager
    def shown(self) -> Generator[None]:
        """In the block, the functions of `time` show this clock."""
        real_sleep, own = time.sleep, threading.get_ident()

        def sleep(seconds: float) -> None:
            if threading.get_ident() == own:
                self._passed += seconds
            else:
                real_sleep(seconds)

        shown = {"time": self.time, "monotonic": self.monotonic, "perf_counter": self.monotonic}
        with contextlib.ExitStack() as patches:
            for name, function in shown.items():
                patches.enter_context(mock.patch.object(time, name, function))
                patches.enter_context(mock.patch.object(time, f"{name}_ns", _in_ns(function)))
            patches.enter_context(mock.patch.object(time, "sleep", sleep))
            yield


def _in_ns(function: Callable[[], float]) -> Callable[[], int]:
    return lambda: int(function() * 1e9)
