"""An export that is being written."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable


class PendingExport:
    """An export that is written in a thread, from values that were copied when it was started.

    Args:
        write: writes it and returns its path.

    Example:
        >>> PendingExport(lambda: "exports/1700000000").wait()
        'exports/1700000000'
    """

    def __init__(self, write: Callable[[], str]) -> None:
        self._write = write
        self._path: str | None = None
        self._error: BaseException | None = None
        # Not a daemon: a process that ends finishes its export first, and jax never runs in a dying interpreter.
        self._thread = threading.Thread(target=contextvars.Context().run, args=(self._run,), name="export")
        self._thread.start()

    def wait(self) -> str:
        """The path of the complete export; raises what went wrong."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._path is not None
        return self._path

    def done(self) -> bool:
        """Whether it is complete or has failed."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._path = self._write()
        except BaseException as error:
            self._error = error
