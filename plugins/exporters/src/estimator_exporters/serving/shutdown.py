"""The shutdown of a server. The first signal completes the requests in progress, and the second ends the process."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn

_log = logging.getLogger("estimator_exporters")
_INTERRUPTED = 130
_TWICE = 1.0  # seconds in which a second signal counts as a repetition of the first
_SENDING = 0.1  # seconds for sending the last answers


class EndingServer(uvicorn.Server):
    """Ends with exit code 0 if every request was answered. uvicorn would repeat the signal and be killed by it.

    Args:
        config: the configuration of the server.
        drain_seconds: the seconds that requests in progress have at the end.
        ending: called when the shutdown begins.
        overdue: returns whether requests were abandoned. It is called at the end.
        loading: returns whether an export is being loaded. It is called at the end.
        close: called before a process ends while threads still run in it.
        refused: filled with the reason if the server cannot listen.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        drain_seconds: float,
        ending: Callable[[], None],
        overdue: Callable[[], bool],
        loading: Callable[[], bool],
        close: Callable[[], None],
        refused: Sequence[Exception],
    ) -> None:
        super().__init__(config)
        self._drain_seconds = drain_seconds
        self._ending = ending
        self._overdue = overdue
        self._loading = loading
        self._close = close
        self._refused = refused
        self._first = 0.0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drains after the first signal, and ends the process at a later one, even while models load.

        Programs that start others forward signals that the terminal has sent to both. Two signals in a short time count
        as one.
        """
        now = time.monotonic()
        self._first = self._first or now
        if self.should_exit:
            if now - self._first < _TWICE:
                return
            os.write(2, b"estimator serve: ended by a second signal. Requests in progress are lost.\n")
            os._exit(_INTERRUPTED if sig == signal.SIGINT else 1)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Loads the models, and then listens. Another process may have taken the address in the meantime.

        Raises:
            ArgumentError: the server cannot listen, for example because another process has taken the address.
        """
        try:
            await super().startup(sockets)
        except OSError:
            if not self._refused:
                raise
        if self._refused:
            await self.lifespan.shutdown()
            raise self._refused[0]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Completes the requests in progress. Requests that take longer than the drain end with the process."""
        self._ending()
        await super().shutdown(sockets)
        overdue = self._overdue()
        if overdue:
            _log.error("Requests were not answered within %g s of the signal; they are lost", self._drain_seconds)
        if overdue or self._loading():
            await asyncio.sleep(_SENDING)
            self._close()
            logging.shutdown()
            os._exit(1 if overdue else 0)  # Python would wait for the threads of models and of loading
