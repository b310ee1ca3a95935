"""Tells of checkpoints: each once, when it is committed, and never of one that was not."""

from __future__ import annotations

from collections.abc import Callable

from estimator_core._checkpoint.saved import PendingCheckpoint


class CommitEvents:
    """The checkpoints of one training call of which nobody was told yet.

    Args:
        tell: called with the step and the path of each committed checkpoint, in order.

    Example:
        >>> events = CommitEvents(lambda step, path: print("saved", step, "at", path))
        >>> events.add(PendingCheckpoint(10, lambda: "checkpoints/10"))
        >>> events.finish()
        saved 10 at checkpoints/10
    """

    def __init__(self, tell: Callable[[int, str], None]) -> None:
        self._tell = tell
        self._pending: list[PendingCheckpoint] = []

    def add(self, saved: PendingCheckpoint) -> None:
        """Takes a commit that is under way."""
        self._pending.append(saved)

    def look(self) -> bool:
        """Tells of what is committed by now; returns whether no commit is under way any more."""
        while self._pending and self._pending[0].done():
            saved = self._pending.pop(0)
            if saved.error is None:
                self._tell(saved.step, saved.path)
        return not self._pending

    def finish(self) -> None:
        """Waits for the commits under way and tells of them; the error of one that failed is left to the store."""
        for saved in self._pending:
            saved.join()
        self.look()
