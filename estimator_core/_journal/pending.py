"""The journal of a run that becomes the writer with the first thing that it writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from estimator_core._journal.entries import Entry
from estimator_core._journal.lineage import Lineage
from estimator_core._journal.writer import Journal


class RunJournal(Protocol):
    """What a run asks of its journal."""

    @property
    def lineage(self) -> Lineage:
        """What it comes to."""
        ...

    @property
    def epoch(self) -> int:
        """Of this run."""
        ...

    def publish(self, *entries: Entry) -> int:
        """As `Journal.publish`."""
        ...

    def check(self) -> None:
        """As `Journal.check`."""
        ...

    def superseded_by(self) -> str | None:
        """As `Journal.superseded_by`."""
        ...

    def once_taken(self, then: Callable[[], None]) -> None:
        """Calls a function once this run is the writer: now, if it is."""
        ...


class PendingJournal:
    """Takes the next epoch when it is first needed: a call that is refused before leaves no trace.

    Args:
        take: makes the run the writer.
        seen: what the journal came to when the run chose where to start.
    """

    def __init__(self, take: Callable[[], Journal], seen: Lineage) -> None:
        self._take, self._seen = take, seen
        self._journal: Journal | None = None
        self._then: list[Callable[[], None]] = []
        self._lock = threading.RLock()

    def taken(self) -> Journal:
        """The journal, of which this run is the writer.

        Raises:
            SupersededError: another run has begun since this one chose where to start.
            JournalError, StorageError: as `take_over`.
        """
        with self._lock:
            if self._journal is None:
                self._journal = self._take()
                for then in self._then:
                    then()
            return self._journal

    @property
    def lineage(self) -> Lineage:
        """What the journal comes to."""
        return self._seen if self._journal is None else self._journal.lineage

    @property
    def epoch(self) -> int:
        """Of this run."""
        return self.taken().epoch

    def publish(self, *entries: Entry) -> int:
        """As `Journal.publish`."""
        return self.taken().publish(*entries)

    def check(self) -> None:
        """As `Journal.check`."""
        self.taken().check()

    def superseded_by(self) -> str | None:
        """As `Journal.superseded_by`."""
        return self.taken().superseded_by()

    def once_taken(self, then: Callable[[], None]) -> None:
        """Calls a function once this run is the writer: now, if it is."""
        with self._lock:
            if self._journal is None:
                self._then.append(then)
                return
        then()
