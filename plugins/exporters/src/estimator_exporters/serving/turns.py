"""Connections with long bodies are read in turns, so that many of them do not block other connections."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl

_AT_A_TIME = 4  # number of connections per pass of the event loop, each with a read of up to 256 KB


class Turns:
    """Resumes some of the waiting connections in each pass of the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[TurnFlow] = deque()

    def wait(self, flow: TurnFlow) -> None:
        """Adds a connection to the queue. It continues to read at its turn."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        self._waiting.append(flow)

    def _next(self) -> None:
        for _ in range(min(_AT_A_TIME, len(self._waiting))):
            self._waiting.popleft().take_turn()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)


class TurnFlow(FlowControl):
    """The flow control of a connection. It continues to read at its turn.

    Args:
        transport: the transport of the connection.
        turns: the queue of all connections.
    """

    def __init__(self, transport: Any, turns: Turns) -> None:
        super().__init__(transport)
        self._turns = turns
        self._queued = False

    def resume_reading(self) -> None:
        """Requests a turn."""
        if self.read_paused and not self._queued:
            self._queued = True
            self._turns.wait(self)

    def take_turn(self) -> None:
        """Continues to read."""
        self._queued = False
        if not self._transport.is_closing():
            super().resume_reading()
