"""Clients that close their connection before their answer: what waits for a run on their behalf is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from estimator_exporters.serving.body import ClientGoneError

#: The name under which the state of a request holds its `Client`.
CLIENT = "client"


class Client:
    """Who waits at the other end of a connection."""

    def __init__(self) -> None:
        self._gone = False
        self._cancel: Callable[[], object] | None = None

    def leave(self) -> None:
        """Ends what is done in `awaited`; called when the connection is closed."""
        self._gone = True
        if self._cancel is not None:
            self._cancel()

    @contextmanager
    def awaited(self) -> Generator[None]:
        """What is to be done only while the client is there. One task at a time may be in it.

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
