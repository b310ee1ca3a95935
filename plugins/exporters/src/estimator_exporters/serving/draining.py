"""The time that requests in progress have at the end of a server, over HTTP and gRPC together."""

from __future__ import annotations

import asyncio
import math
import time

_LEAST = 0.5  # seconds that whatever is last has after the others have used up the time


class Draining:
    """The end of a server, which has not begun at first.

    Attributes:
        begun: set at the end.
        overdue: whether requests were given up because the time was over.
    """

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.overdue = False
        self._deadline = math.inf

    def begin(self, seconds: float) -> None:
        """Leaves the requests in progress that long; does nothing once the end has begun."""
        if not self.begun.is_set():
            self._deadline = time.monotonic() + seconds
            self.begun.set()

    @property
    def over(self) -> bool:
        """Whether the time of the requests in progress has passed."""
        return time.monotonic() >= self._deadline

    def left(self) -> float:
        """Seconds that are left."""
        return max(self._deadline - time.monotonic(), _LEAST)
