"""The time that requests in progress have at the end of a server, over HTTP and gRPC together."""

from __future__ import annotations

import asyncio
import math
import time

_LEAST = 0.5  # seconds that the last part of the shutdown has, even if the time is used up


class Draining:
    """The shutdown of a server. It has not begun at first.

    Attributes:
        begun: the event that is set when the shutdown begins.
        overdue: whether requests were abandoned because the time was over.
    """

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.overdue = False
        self._deadline = math.inf

    def begin(self, seconds: float) -> None:
        """Sets the time that the requests in progress have. Does nothing if the shutdown has already begun."""
        if not self.begun.is_set():
            self._deadline = time.monotonic() + seconds
            self.begun.set()

    @property
    def over(self) -> bool:
        """Returns whether the time of the requests in progress has passed."""
        return time.monotonic() >= self._deadline

    def left(self) -> float:
        """Returns the seconds that are left."""
        return max(self._deadline - time.monotonic(), _LEAST)
