"""An export that is being written."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable


class PendingExport:
    """An export that is written in a thread, from values that were copied at the start.

    Args:
        write: a function that writes the export and returns its path.

    Example:
        >>> PendingExport(lambda: "exports/1700000000").wait()
        'exports/1700000000'
    """

    def __init__(self, write: Callable[[], str]) -> None:
        self._write = write
        self._path: str | None = None
        self._error: BaseException | None = None
        # It is not a daemon, so that a process finishes its export before it ends, and jax never runs while the
        # interpreter shuts down.
        self._thread = threading.Thread(target=contextvars.Context().run, args=(self._run,), name="export")
        self._thread.start()

    def wait(self) -> str:
        """Waits for the export and returns its path. Raises its error."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._path is not None
        return self._path

    def done(self) -> bool:
        """Returns whether the export is complete or has failed."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._path = self._write()
        except BaseException as error:
            self._error = error
