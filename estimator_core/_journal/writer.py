"""Writes a journal: a run takes the next epoch, and every publish proves that no later one exists.

The journal is the fence. One conditional write creates record n+1, so only one of several writers succeeds. The others
then read which run wrote it. The next publish of a superseded run is refused.

A run takes its epoch with its first write, so a call that is refused earlier leaves no trace.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TypeAlias

from estimator_core._journal.entries import Entry, JournalError, Record, Took, decode, digest_of, encode, key_of, remedy
from estimator_core._journal.lineage import Lineage, add, check_follows
from estimator_core._journal.reading import EVERY, EVERY_START, IDENTITY, is_kept, read_lineage, refresh, write_snapshot
from estimator_core._storage.contract import (
    ObjectExistsError,
    ObjectMissingError,
    OutcomeUnknownError,
    Storage,
    StorageError,
    StorageGoneError,
)
from estimator_core.errors import SupersededError

#: The seconds for which a write with an unknown outcome is repeated, but at least once, because a write that hangs
#: takes minutes.
_TRIED_SECS = 120.0


class Journal:
    """The journal of the current writer. `take_over` creates it.

    Args:
        storage: the storage of the journal.
        lineage: the sum of the journal, including this writer's epoch, and later epochs if others have taken over
            since.
        epoch: the epoch of this writer.
    """

    def __init__(self, storage: Storage, lineage: Lineage, *, epoch: int) -> None:
        self._storage = storage
        self._epoch = epoch
        self._lock = threading.Lock()  # saves publish from their own thread
        self.lineage = lineage

    @property
    def epoch(self) -> int:
        """The epoch of this writer."""
        return self._epoch

    def publish(self, *entries: Entry) -> int:
        """Records entries: all of them or none.

        Returns:
            The number of the record. It is durable.

        Raises:
            SupersededError: another run has taken over. Nothing is recorded. The message names the other run.
            StorageGoneError: the model_dir was removed, moved or replaced. Nothing is recorded.
            JournalError: the journal was changed by hand.
            StorageError: the storage does not answer. It may be unknown whether the record exists. If it exists, the
                next `publish` reads it.
        """
        with self._lock:
            while True:
                self._refuse_if_superseded()
                _require_unchanged(self._storage, self.lineage)
                number = _append(self._storage, self.lineage, entries, epoch=self._epoch)
                if number is not None:
                    return number

    def check(self) -> None:
        """Checks that this run is the current writer.

        Raises:
            SupersededError, StorageGoneError, JournalError: see `publish`.
        """
        with self._lock:
            _require_unchanged(self._storage, self.lineage)
            refresh(self._storage, self.lineage)
            self._refuse_if_superseded()

    def once_taken(self, then: Callable[[], None]) -> None:
        """Calls a function at once, because this run is already the writer."""
        then()

    def superseded_by(self) -> str | None:
        """Returns the run that has taken over; None while this run is the writer."""
        with self._lock:
            refresh(self._storage, self.lineage)
        return self.lineage.writer if self.lineage.epoch != self._epoch else None

    def _refuse_if_superseded(self) -> None:
        if self.lineage.epoch != self._epoch:
            raise SupersededError(
                f"Another run has taken over {self._storage.url}: {self.lineage.writer} (epoch {self.lineage.epoch}, "
                f"after epoch {self._epoch} of this run). This run stops. Work that it has not recorded is lost."
            )


def take_over(
    storage: Storage,
    writer: str,
    step: Callable[[Lineage], int],
    first: Callable[[Lineage], Sequence[Entry]] = lambda lineage: (),
    known: Lineage | None = None,
) -> Journal:
    """Makes a run the writer of a model_dir. If several try at once, each becomes the writer in turn.

    Args:
        storage: the storage of the model_dir.
        writer: the identity of the run, for readers of the journal.
        step: a function that returns the step to continue from, given the sum of the journal. It is called again if
            another run is faster.
        first: a function that returns entries to record first, for a model_dir that an older release wrote.
        known: the part of the journal that this process has read. If it still exists, only later records are read.

    Raises:
        JournalError, StorageError: see `read_lineage`.

    Example:
        >>> import tempfile
        >>> from estimator_core._journal.entries import Ended
        >>> from estimator_core._storage.local import LocalStorage
        >>> storage = LocalStorage(tempfile.mkdtemp())
        >>> one = take_over(storage, "host-a, process 1", lambda lineage: 0)
        >>> two = take_over(storage, "host-b, process 2", lambda lineage: 0)
        >>> two.publish(Ended(step=0, reason="input", failed=False))
        2
        >>> one.superseded_by()
        'host-b, process 2'
    """
    lineage = _begun(storage) if known is None or known.number < 0 or not is_kept(storage, known) else known.copy()
    number = lineage.number
    while True:
        refresh(storage, lineage)
        _refuse_gap(storage, lineage)
        epoch = lineage.epoch + 1
        took = Took(epoch=epoch, writer=writer, step=step(lineage), time=time.time())
        if _append(storage, lineage, [*first(lineage), took], epoch=epoch) is not None:
            if lineage.number // EVERY_START > max(number, 0) // EVERY_START:
                write_snapshot(storage, lineage)
            return Journal(storage, lineage, epoch=epoch)


def observe(storage: Storage, observer: str, *entries: Entry, known: Lineage | None = None) -> int:
    """Records the results of a process that is not the writer: evaluations, event files and exports.

    Args:
        storage: the storage of the model_dir.
        observer: the identity of the process, for readers of the journal.
        entries: the results to record.
        known: the sum that this process has just read. It is changed. Default: the sum is read in this call.

    Returns:
        The number of the record.

    Raises:
        JournalError, StorageError: see `Journal.publish`.
    """
    if not observer:
        raise JournalError("An observer needs a name.")
    lineage = _begun(storage) if known is None else known
    while True:
        number = _append(storage, lineage, entries, epoch=lineage.epoch, observer=observer)
        if number is not None:
            return number


def _append(
    storage: Storage, lineage: Lineage, entries: Sequence[Entry], *, epoch: int, observer: str = ""
) -> int | None:
    """Creates the next record and returns its number; None if another process was first, whose record is then read."""
    number = lineage.number + 1
    nonce = uuid.uuid4().hex
    record = Record(epoch=epoch, before=lineage.head, nonce=nonce, observer=observer, entries=entries)
    check_follows(lineage, record)  # a record that no reader accepts would end the journal
    key, data = key_of(lineage.identity, number), encode(record)
    made = _made(storage, key, data)
    if made:
        add(lineage, decode(data, key), digest_of(data))  # as every reader adds it; the object may have changed by now
    else:
        refresh(storage, lineage)
    if made and lineage.number // EVERY > max(number - 1, 0) // EVERY:
        write_snapshot(storage, lineage)
    return number if made else None


def _made(storage: Storage, key: str, data: bytes) -> bool:
    """Creates the object of this key, and returns whether this process created it."""
    began = time.monotonic()
    for attempt in itertools.count():
        try:
            storage.put_new(key, data)
        except OutcomeUnknownError as error:
            if attempt and time.monotonic() - began > _TRIED_SECS:
                told = f"after {attempt + 1} attempts it is unknown whether {key} was written. The last error: {error}"
                raise StorageError(f"{storage.url}: {told}") from error
            time.sleep(min(0.05 * 2**attempt, 5.0))
        except ObjectExistsError:
            return storage.get(key) == data  # the nonce shows that this process wrote it and lost the answer
        else:
            break
    return True


def _begun(storage: Storage) -> Lineage:
    """Returns the sum of the journal. Without a journal, the model_dir gets its identity."""
    lineage = read_lineage(storage)
    if not lineage.identity:
        identity = uuid.uuid4().hex
        made = _made(storage, IDENTITY, identity.encode())
        lineage.identity = identity if made else storage.get(IDENTITY).decode("ascii", "replace")
    return lineage


def _refuse_gap(storage: Storage, lineage: Lineage) -> None:
    """Checks that no record is missing before a later one. Otherwise the next record would be written into the gap."""
    keys = [entry.key for entry in storage.list(f"journal/{lineage.identity}")]
    if keys and keys[-1] > key_of(lineage.identity, lineage.number) and not refresh(storage, lineage):
        gap = f"{storage.url}/{key_of(lineage.identity, lineage.number + 1)}"
        raise JournalError(f"{gap} is missing, but {keys[-1]} exists. {remedy(gap)}")


def _require_unchanged(storage: Storage, lineage: Lineage) -> None:
    """Checks that the last record still exists and that the directory was not removed, moved or replaced."""
    key = key_of(lineage.identity, lineage.number)
    try:
        identity = storage.get(IDENTITY).decode("ascii", "replace")
        if identity != lineage.identity:
            raise StorageGoneError(f"{storage.url} was replaced by another model_dir while the run used it.")
        last = storage.get(key)
    except ObjectMissingError:
        raise StorageGoneError(f"{storage.url} was removed or moved while the run used it: {key} is gone.") from None
    if digest_of(last) != lineage.head:
        raise JournalError(f"{storage.url}: {key} differs from what was written. Do not change the journal by hand.")


class PendingJournal:
    """Takes the next epoch when it is first needed, so a call that is refused earlier leaves no trace.

    Args:
        take: a function that makes the run the writer.
        seen: the sum of the journal when the run chose its first step.
    """

    def __init__(self, take: Callable[[], Journal], seen: Lineage) -> None:
        self._take, self._seen = take, seen
        self._journal: Journal | None = None
        self._then: list[Callable[[], None]] = []
        self._lock = threading.RLock()

    def taken(self) -> Journal:
        """Returns the journal, whose writer is this run.

        Raises:
            SupersededError: another run has begun since this one chose its first step.
            JournalError, StorageError: see `take_over`.
        """
        with self._lock:
            if self._journal is None:
                self._journal = self._take()
                for then in self._then:
                    then()
            return self._journal

    @property
    def lineage(self) -> Lineage:
        """The sum of the journal."""
        return self._seen if self._journal is None else self._journal.lineage

    @property
    def epoch(self) -> int:
        """The epoch of this run."""
        return self.taken().epoch

    def publish(self, *entries: Entry) -> int:
        """See `Journal.publish`."""
        return self.taken().publish(*entries)

    def check(self) -> None:
        """See `Journal.check`."""
        self.taken().check()

    def superseded_by(self) -> str | None:
        """See `Journal.superseded_by`."""
        return self.taken().superseded_by()

    def once_taken(self, then: Callable[[], None]) -> None:
        """Calls a function when this run becomes the writer, or now if it already is."""
        with self._lock:
            if self._journal is None:
                self._then.append(then)
                return
        then()


#: The journal of a run, whether the run is the writer already or becomes it later.
RunJournal: TypeAlias = Journal | PendingJournal
