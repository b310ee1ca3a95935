"""The numbers that a progress display shows."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The progress of a call, and its rate.

    Attributes:
        done: the number of finished steps, or of batches in an evaluation.
        total: the number of steps of the call, or None if it is not known.
        loss: the newest loss, or None before the first.
        steps_per_sec, examples_per_sec: the rates in the last half minute. None before the second reading.
        secs_left: the seconds until `total` at that rate.
        elapsed: the seconds since the first step.
        cut_short: whether an error or an interrupt has ended the call.
    """

    done: int
    total: int | None
    loss: float | None
    steps_per_sec: float | None
    examples_per_sec: float | None
    secs_left: float | None
    elapsed: float
    cut_short: bool = False


class Pace:
    """Measures the rate over a moving window of readings.

    Example:
        >>> pace = Pace(window_secs=30.0)
        >>> pace.add(100.0, 1)
        >>> pace.add(101.0, 51)
        >>> pace.steps_per_sec
        50.0
    """

    def __init__(self, window_secs: float = 30.0) -> None:
        self._window_secs = window_secs
        self._readings: deque[tuple[float, int]] = deque()

    def add(self, now: float, done: int) -> None:
        """Records how many steps are done at a time (`time.monotonic()`)."""
        self._readings.append((now, done))
        while len(self._readings) > 2 and now - self._readings[1][0] >= self._window_secs:
            self._readings.popleft()

    @property
    def steps_per_sec(self) -> float | None:
        """The steps per second within the window."""
        if len(self._readings) < 2:
            return None
        (began, first), (ended, last) = self._readings[0], self._readings[-1]
        if ended <= began or (first == last and ended - began < 1.0):
            return None  # a rate needs more than one batch
        return (last - first) / (ended - began)


def as_clock(secs: float | None) -> str:
    """Returns seconds as h:mm:ss.

    Example:
        >>> as_clock(3723.4), as_clock(None)
        ('1:02:03', '-:--:--')
    """
    if secs is None or not math.isfinite(secs):
        return "-:--:--"
    whole = int(secs)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def as_text(figures: Figures) -> str:
    """Returns the numbers as one line.

    Example:
        >>> as_text(
        ...     Figures(
        ...         done=5, total=10, loss=0.5, steps_per_sec=2.0, examples_per_sec=64.0, secs_left=2.5, elapsed=2.5
        ...     )
        ... )
        '5/10 (50%), loss 0.5, 2 steps/s, 64 examples/s, 0:00:02 elapsed, 0:00:02 left'
    """
    parts = [str(figures.done)]
    if figures.total:
        parts = [f"{figures.done}/{figures.total} ({100 * figures.done // figures.total}%)"]
    if figures.loss is not None:
        parts.append(f"loss {figures.loss:.5g}")
    if figures.steps_per_sec is not None:
        parts.append(f"{figures.steps_per_sec:.3g} steps/s")
    if figures.examples_per_sec is not None:
        parts.append(f"{figures.examples_per_sec:.4g} examples/s")
    parts.append(f"{as_clock(figures.elapsed)} elapsed")
    if figures.secs_left is not None:
        parts.append(f"{as_clock(figures.secs_left)} left")
    return ", ".join(parts)
