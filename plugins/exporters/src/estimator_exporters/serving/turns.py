"""Connections with long bodies take turns in being read, so that many of them hold up nobody else."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl

_AT_A_TIME = 4  # reads of up to 256 KB in one pass of the event loop


class Turns:
    """Lets some of the connections that wait read on in each pass of the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[TurnFlow] = deque()

    def wait(self, flow: TurnFlow) -> None:
        """Lets a connection read on when it is its turn."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        self._waiting.append(flow)

    def _next(self) -> None:
        for _ in range(min(_AT_A_TIME, len(self._waiting))):
            self._waiting.popleft().take_turn()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)


class TurnFlow(FlowControl):
    """The flow control of a connection; it reads on when it is its turn.

    Args:
        transport: of the connection.
        turns: of all of them.
    """

    def __init__(self, transport: Any, turns: Turns) -> None:
        super().__init__(transport)
        self._turns = turns
        self._queued = False

    def resume_reading(self) -> None:
        """Asks for a turn."""
        if self.read_paused and not self._queued:
            self._queued = True
            self._turns.wait(self)

    def take_turn(self) -> None:
        """Reads on."""
        self._queued = False
        if not self._transport.is_closing():
            super().resume_reading()
