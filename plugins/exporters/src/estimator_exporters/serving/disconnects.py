"""Clients that disconnect before their answer. Work that waits for such a client is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from estimator_exporters.serving.body import ClientGoneError

#: The key of the `Client` in the state of a request.
CLIENT = "client"


class Client:
    """The client of a connection."""

    def __init__(self) -> None:
        self._gone = False
        self._cancel: Callable[[], object] | None = None

    def leave(self) -> None:
        """Cancels the block in `awaited`. It is called when the connection is closed."""
        self._gone = True
        if self._cancel is not None:
            self._cancel()

    @contextmanager
    def awaited(self) -> Generator[None]:
        """Runs a block only while the client is connected. One task at a time may be in it.

        Raises:
            ClientGoneError: the client has left.
        """
        task = asyncio.current_task()
        if self._gone or task is None:
            raise ClientGoneError
        self._cancel = task.cancel
        try:
            yield
        except asyncio.CancelledError as cancelled:
            if not self._gone:
                raise
            task.uncancel()
            raise ClientGoneError from cancelled
        finally:
            self._cancel = None
