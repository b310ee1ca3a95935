"""How far the host runs ahead of the device."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

#: Dispatches in flight: two keep the device busy; more only where they are short, since each wait costs the host a
#: sleep and a wake-up.
LEAST, MOST = 2, 32
#: The host is ahead by no more than this many seconds, or by two dispatches.
AHEAD_SECS = 0.004


class InFlightLimiter:
    """Waits for earlier dispatches, so that clocks on the host say something about the device.

    Example:
        >>> import jax.numpy as jnp
        >>> limiter = InFlightLimiter()
        >>> for step in range(100):
        ...     limiter.add(jnp.float32(step))
        >>> limiter.in_flight <= MOST
        True
    """

    def __init__(self) -> None:
        self._values: deque[Any] = deque()
        self._limit = LEAST
        self._waited_at: float | None = None

    @property
    def in_flight(self) -> int:
        """Dispatches that have not been waited for."""
        return len(self._values)

    def add(self, value: object) -> None:
        """Notes a dispatch by one of its outputs; waits until few enough are under way."""
        values = self._values
        values.append(value)
        if len(values) > self._limit:
            self._wait()

    def _wait(self) -> None:
        count = max(1, self._limit // 2)
        for _ in range(count - 1):
            self._values.popleft()
        self._values.popleft().block_until_ready()
        now = time.perf_counter()
        if self._waited_at is not None:
            seconds = (now - self._waited_at) / count
            self._limit = max(LEAST, min(MOST, int(AHEAD_SECS / max(seconds, 1e-9))))
        self._waited_at = now
