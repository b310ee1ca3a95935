"""The nine obligations of a journal, as checks of the history of a model_dir.

1. Each number has one record. The records are chained, and epochs never fall.
2. An acknowledged record is in the journal for ever.
3. A record that was not acknowledged is there completely or not at all, and no attempt is recorded twice.
4. A writer appends nothing after the record of the next epoch.
5. A checkpoint that a record names is whole, when the record appears and for as long as it is kept.
6. Nothing that a reader has leased is removed.
7. Derived data equals the journal: each snapshot equals the state that the records describe.
8. Only dead checkpoints are removed: retired ones, and those of an earlier epoch that were never recorded.
9. If the model_dir is removed or replaced, a run stops within one publish and leaves nothing in another journal.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from estimator_core.journal import Entry, JournalError, Lineage, Removed, Saved, Took, read_lineage
from estimator_core.storage import Storage
from estimator_testing._core import add, decode, digest_of, key_of_snapshot, write_snapshot
from estimator_testing.simulation.disk import Change, Disk, Event, Note
from estimator_testing.simulation.holds import Holds
from estimator_testing.simulation.simulate import DURABLE, Evidence
from estimator_testing.simulation.storage import VirtualStorage

_PLACE = re.compile(r"data/[^/]+/e(\d+)-\d+-[0-9a-f]+")
_NOBODY = ("", 0)


@dataclass(frozen=True, kw_only=True)
class Published:
    """The result of a publish call that a program notes as `published`.

    Args:
        number: the number of the record.
        epoch: the epoch of the writer; None for an observer.
        entries: the entries of the record.
    """

    number: int
    epoch: int | None
    entries: tuple[Entry, ...]


def check_model_dir(evidence: Evidence, *, lease_seconds: float) -> list[str]:
    """Returns a sentence for each violated obligation.

    Programs note `wants` with a tuple of entries before they publish the entries, and `published` with a `Published`.
    They note `leased` with a place. When they read under a lease, they note `found nothing` and `read something else`
    with a place, and `damaged` with the message of a `JournalError`.

    Args:
        evidence: the evidence of a schedule.
        lease_seconds: the seconds for which a lease is valid.
    """
    audit = _Audit(lease_seconds)
    for event in evidence.events:
        audit.follow(event)
    return audit.violations if evidence.removed else [*audit.violations, *audit.at_the_end()]


class _Audit:
    """Follows the events of a schedule in order, and keeps the state of the journal at each moment."""

    def __init__(self, lease_seconds: float) -> None:
        self.violations: list[str] = []
        self._lease_seconds = lease_seconds
        self._takers: dict[tuple[str, int], int] = {}
        self._publishing: set[tuple[str, int]] = set()
        self._begun: set[tuple[str, int]] = set()
        self._wanted: Counter[str] = Counter()
        self._begin_model_dir()

    def _begin_model_dir(self) -> None:
        self._disk = Disk(DURABLE)
        self._lineage = Lineage()
        self._records: list[tuple[Entry, ...]] = []
        self._strangers = {*self._takers, *self._publishing}  # they work in another model_dir
        self._older = set(self._begun)  # they may have read the replaced one
        self._takers = {}
        self._there: Counter[str] = Counter()
        self._dead: set[str] = set()
        self._published: list[Published] = []
        self._overtaken: list[str] = []
        self._holds = Holds(self._lease_seconds)
        self._stopping: Counter[tuple[str, int]] = Counter()

    def follow(self, event: Event) -> None:
        """Follows one event."""
        self._disk.clock = event.time
        match event:
            case Note():
                self._said(event)
            case Change(call="removed"):
                self._begin_model_dir()
            case Change():
                self._changed(event)

    def at_the_end(self) -> list[str]:
        """Returns the violations in the final state."""
        return [*self._journal_faults(), *self._snapshot_faults()]

    def _said(self, note: Note) -> None:
        who = (note.process, note.life)
        if note.what == "published":
            self._publishing.discard(who)
        match note.what, note.about:
            case "begins", _:
                self._begun.add(who)
            case "wants", entries:
                self._wanted[repr(entries)] += 1
                self._publishing.add(who)
            case "published", Published() as published if who in self._strangers:
                self._stopping[who] += 1
                if self._stopping[who] > 1:
                    self._accuse(9, f"{note.process} continues with record {published.number} in another's model_dir")
            case "published", Published() as published:
                self._published.append(published)
            case "leased", place if str(place).startswith(f"data/{self._lineage.identity}/"):
                self._holds.begin(who, str(place))
            case "found nothing", place if self._holds.holds(who, str(place), note.time):
                self._accuse(6, f"{note.process} has leased {place}, but does not find it")
            case "damaged", error if who not in self._older:
                self._accuse(1, f"a journal that nobody has touched is refused: {error}")
            case "read something else", place:
                self._accuse(5, f"{note.process} reads bytes in {place} that were not saved")
            case _:
                pass

    def _changed(self, change: Change) -> None:
        folder = change.key.partition("/")[0]
        if folder == "leases":
            self._holds.follow(change)
        ours = change.key.startswith(f"{folder}/{self._lineage.identity}/")  # of the current one
        if folder == "data" and ours and change.data is None and change.call == "delete":
            self._removed_data(change)
        if folder == "journal" and self._disk.holds(change.key):
            self._accuse(1, f"{change.process} changes {change.key}, which already exists")
        if change.data is None:
            self._disk.delete(_NOBODY, change.key)
        else:
            self._disk.write(_NOBODY, "put", change.key, change.data)
        if change.key == "identity" and change.data is not None:
            self._lineage.identity = change.data.decode()
        if folder == "snapshots" and ours and change.data is not None:
            self._compare(change.key, change.data)
        if folder == "journal" and ours and change.data is not None:
            self._appended(change, change.data)

    def _appended(self, change: Change, data: bytes) -> None:
        lineage, who = self._lineage, (change.process, change.life)
        try:
            record = decode(data, change.key)
            add(lineage, record, digest_of(data))
        except JournalError as error:
            self._accuse(9 if who in self._strangers else 1, f"{change.key} by {change.process}: {error}")
            return
        self._records.append(tuple(record.entries))
        self._dead.update(lineage.retired)
        if change.process != "outside" and not _is_of_the_journal(record.entries):
            self._there[repr(record.entries)] += 1
        if any(isinstance(entry, Took) for entry in record.entries):
            self._takers[who] = lineage.epoch
        elif self._takers.get(who, lineage.epoch) != lineage.epoch:
            self._accuse(4, f"{change.process} of epoch {self._takers[who]} appends {change.key} in {lineage.epoch}")
        for entry in record.entries:
            if isinstance(entry, Saved) and not self._is_whole(entry):
                self._accuse(5, f"{change.key} names {entry.place}, which is incomplete")

    def _removed_data(self, change: Change) -> None:
        """Checks obligations 6 and 8 when an object of a checkpoint is removed."""
        place = change.key.rpartition("/")[0]
        match = _PLACE.fullmatch(place)
        if any(saved.place == place for saved in self._lineage.saved.values()):
            self._accuse(8, f"{change.process} removes {change.key}, which is kept")
        elif place not in self._dead and match is not None and int(match[1]) >= self._lineage.epoch:
            self._accuse(8, f"{change.process} removes {change.key}, which can still be recorded")
        if holders := self._holds.holders(place, change.time):
            self._accuse(6, f"{change.process} removes {change.key}, which {', '.join(holders)} has leased")

    def _journal_faults(self) -> list[str]:
        found = [
            f"2: record {one.number} was acknowledged, but is not in the journal: {one.entries}"
            for one in self._published
            if one.number >= len(self._records) or self._records[one.number] != one.entries
        ]
        found += [
            f"3: {times} records say what was wanted {self._wanted[entries]} times: {entries}"
            for entries, times in self._there.items()
            if times > self._wanted[entries]
        ]
        lie = [entry.key for entry in self._disk.list(f"journal/{self._lineage.identity}")]
        if len(lie) != len(self._records):
            found.append(f"1: the journal has {len(self._records)} records in a row, but {lie} exist")
        for saved in self._lineage.saved.values():
            if not self._is_whole(saved):
                found.append(f"5: {saved.place} is kept, but is no longer complete")
        return found

    def _compare(self, key: str, data: bytes) -> None:
        """Checks a snapshot. It is a function of the records before it, so it can be made again, byte for byte."""
        same = Disk(DURABLE)
        if key == key_of_snapshot(self._lineage):
            write_snapshot(_plain(same), self._lineage)
            if same.read(key) != data:
                self._accuse(7, f"{key} differs from the sum of the records")
        else:  # more records have appeared since, so they are added to both
            self._overtaken.append(key)

    def _snapshot_faults(self) -> list[str]:
        """Checks that each overtaken snapshot, with the records after it, equals the state of all records."""
        found: list[str] = []
        snapshots = [entry.key for entry in self._disk.list(f"snapshots/{self._lineage.identity}")]
        storage = _plain(self._disk)
        while self._overtaken and snapshots:
            if snapshots[-1] in self._overtaken and not self._comes_to_the_same(storage):
                found.append(f"7: {snapshots[-1]} and the records after it differ from the sum of all records")
            storage.delete([snapshots.pop()])
        return found

    def _comes_to_the_same(self, storage: Storage) -> bool:
        try:
            return read_lineage(storage) == self._lineage
        except JournalError:
            return False

    def _is_whole(self, saved: Saved) -> bool:
        parts = [self._disk.read(entry.key) for entry in self._disk.list(saved.place)]
        return hashlib.sha256(b"".join(parts)).hexdigest() == saved.digest

    def _accuse(self, obligation: int, what: str) -> None:
        self.violations.append(f"{obligation}: {what}")


def _is_of_the_journal(entries: Sequence[Entry]) -> bool:
    """Returns whether the journal itself recorded this, without a request of a program."""
    return all(isinstance(entry, Took | Removed) for entry in entries)


def _plain(disk: Disk) -> VirtualStorage:
    return VirtualStorage(disk, _NOBODY, lambda call, key, perform: perform(False))
