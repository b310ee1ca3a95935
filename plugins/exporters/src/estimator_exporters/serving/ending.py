"""The end of a server: the first signal lets it answer what is in progress, the second ends it at once."""

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
_TWICE = 1.0  # seconds in which a second signal is the first once more
_SENDING = 0.1  # seconds for the last answers


class EndingServer(uvicorn.Server):
    """Ends with exit code 0 where every request was answered; uvicorn would repeat the signal and die of it.

    Args:
        config: of the server.
        drain_seconds: for the requests in progress.
        ending: called when the end begins.
        overdue: whether requests were given up; asked at the end.
        loading: whether an export is being loaded; asked at the end.
        close: called before a process ends that something still runs in.
        refused: why the server cannot listen, once it has tried.
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
        """Drains after the first signal, and ends the process at a later one: in any state, also while models load.

        Programs that start others pass on what the terminal has sent to both: two signals at once are one.
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
        """Loads the models, and then listens. Another process may have taken the address meanwhile.

        Raises:
            ArgumentError: it has.
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
        """Answers what is in progress; what takes longer than the drain ends with the process."""
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
