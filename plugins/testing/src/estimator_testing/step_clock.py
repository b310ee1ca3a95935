"""A clock that only the steps of a driven run advance."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from unittest import mock


class StepClock:
    """A time that stands still between steps.

    In `shown()`, `time.time`, `monotonic` and `perf_counter` show it, and `time.sleep` advances it. Other threads see
    the same time, but their sleep is real, because a thread left by an earlier test would otherwise advance this clock.

    Args:
        seconds_per_step: the seconds by which a step advances it.
        monotonic: the first value of `time.monotonic`. That of another process is unrelated.
        now: the first value of `time.time`.

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
        """Advances the clock by the time of `steps` steps."""
        self._passed += steps * self._per_step

    def monotonic(self) -> float:
        """Returns the value of `time.monotonic` and `time.perf_counter`."""
        return self._monotonic + self._passed

    def time(self) -> float:
        """Returns the value of `time.time`."""
        return self._now + self._passed

    @contextlib.contextmanager
    def shown(self) -> Generator[None]:
        """Makes the functions of `time` show this clock in the block."""
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
