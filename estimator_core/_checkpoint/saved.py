"""A checkpoint that is being written, as the loop, hooks and listeners see it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class PendingCheckpoint:
    """A commit under way in a thread of its own, which ends with it; an exit of the process waits for the thread.

    Args:
        step: the global step.
        commit: does the work, returns the committed path.
    """

    def __init__(self, step: int, commit: Callable[[], str]) -> None:
        self._step = step
        self._path: str | None = None
        self._error: BaseException | None = None
        self._raised = False
        self._thread = threading.Thread(target=self._run, args=(commit,), name=f"checkpoint-{step}", daemon=False)
        self._thread.start()

    @property
    def step(self) -> int:
        """The global step that is saved."""
        return self._step

    @property
    def path(self) -> str:
        """The committed directory; waits for the commit and raises its error."""
        self.wait()
        assert self._path is not None
        return self._path

    @property
    def error(self) -> BaseException | None:
        """What went wrong, once `done()`; None as long as nothing has."""
        return self._error

    def done(self) -> bool:
        """Whether the commit has ended, well or badly."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Waits until the commit has ended, well or badly."""
        self._thread.join()

    def wait(self) -> None:
        """Waits for the commit and raises its error."""
        self.join()
        if self._error is not None:
            self._raised = True
            raise self._error

    def settle(self) -> None:
        """Waits for the commit; raises its error unless somebody has been given it."""
        self._thread.join()
        if self._error is not None and not self._raised:
            self.wait()

    def _run(self, commit: Callable[[], str]) -> None:
        try:
            self._path = commit()
        except BaseException as error:  # raised by `wait`
            self._error = error
