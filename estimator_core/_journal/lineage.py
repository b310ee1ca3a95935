"""The sum of a journal: the only source of truth about a model_dir, from which every other file derives."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from estimator_core._journal.entries import (
    Ended,
    Entry,
    Evaluated,
    Exported,
    JournalError,
    Record,
    Removed,
    Retired,
    Saved,
    Segment,
    Took,
)


@dataclass(kw_only=True)
class Lineage:
    """The sum of the records 0 to `number`.

    Args:
        identity: the identity of the model_dir.
        number: the number of the last record; -1 before the first one.
        head: the digest of the last record.
        epoch: the epoch of the current writer; 0 before the first one.
        starts: the records of every run that became the writer, in order.
        saved: the complete checkpoints, by step.
        retired: the digest of each checkpoint that is no longer kept and whose data may still exist, by place.
        evaluations: the results, by name of the evaluation and step.
        marks: the records about each event file, in order. The last one counts. A run may return to the others.
        exports: the complete exports, by place.
        ended: the end of the current writer. None while it works, and after it was interrupted.
    """

    identity: str = ""
    number: int = -1
    head: str = ""
    epoch: int = 0
    starts: list[Took] = field(default_factory=list[Took])
    saved: dict[int, Saved] = field(default_factory=dict[int, Saved])
    retired: dict[str, str] = field(default_factory=dict[str, str])
    evaluations: dict[tuple[str, int], Evaluated] = field(default_factory=dict[tuple[str, int], Evaluated])
    marks: dict[tuple[str, str], tuple[Segment, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[Segment, ...]]
    )
    exports: dict[str, Exported] = field(default_factory=dict[str, Exported])
    ended: Ended | None = None

    def copy(self) -> Lineage:
        """Returns a copy that does not change with this object."""
        tables = {name: dict(getattr(self, name)) for name in ("saved", "retired", "evaluations", "marks", "exports")}
        return replace(self, starts=list(self.starts), **tables)

    @property
    def writer(self) -> str:
        """The current writer; "nobody" before the first one."""
        return self.starts[-1].writer if self.starts else "nobody"

    @property
    def newest(self) -> Saved | None:
        """The complete checkpoint of the highest step."""
        return self.saved[max(self.saved)] if self.saved else None

    @property
    def segments(self) -> list[Segment]:
        """The event files in order, each up to the byte that counts."""
        return [told[-1] for told in self.marks.values()]


def add(lineage: Lineage, record: Record, digest: str) -> None:
    """Adds the next record.

    Args:
        lineage: the sum, which is changed in place.
        record: the next record.
        digest: the digest of its bytes.

    Raises:
        JournalError: see `check_follows`. The sum does not change.
    """
    check_follows(lineage, record)
    for entry in record.entries:
        _note(lineage, entry)
    lineage.number, lineage.head, lineage.epoch = lineage.number + 1, digest, record.epoch


def check_follows(lineage: Lineage, record: Record) -> None:
    """Refuses a record that cannot be the next one.

    Raises:
        JournalError: a previous record was removed or replaced, or two writers shared an epoch, or an observer wrote an
            entry that only the writer may write.
    """
    number = lineage.number + 1
    if record.before != lineage.head:
        raise JournalError(f"Record {number} does not follow record {lineage.number}: one of them was replaced.")
    takes = [entry for entry in record.entries if isinstance(entry, Took)]
    expected = lineage.epoch + len(takes)
    if len(takes) > 1 or record.epoch != expected or any(took.epoch != expected for took in takes):
        raise JournalError(f"Record {number} has epoch {record.epoch} instead of {expected}.")
    if record.observer and any(not isinstance(entry, Evaluated | Segment | Exported) for entry in record.entries):
        raise JournalError(f"Record {number} is by {record.observer}, which is not the writer.")


def _note(lineage: Lineage, entry: Entry) -> None:
    match entry:
        case Took():
            lineage.starts.append(entry)
            lineage.ended = None
            _go_back(lineage, entry.step)
        case Saved():
            before = lineage.saved.get(entry.step)
            if before is None or before.place != entry.place:  # otherwise recorded again, after an answer was lost
                _retire(lineage, entry.step)
            lineage.saved[entry.step] = entry
        case Evaluated():
            lineage.evaluations[entry.name, entry.step] = entry
        case Segment():
            told = (*lineage.marks.get((entry.directory, entry.name), ()), entry)
            oldest = min(lineage.saved, default=entry.step)  # no run returns further than to a checkpoint
            while len(told) > 1 and told[1].step <= oldest:
                told = told[1:]
            lineage.marks[entry.directory, entry.name] = told
        case Exported():
            lineage.exports[entry.place] = entry
        case Retired():
            for step in [step for step, one in lineage.saved.items() if one.place == entry.place]:
                _retire(lineage, step)
        case Removed():
            lineage.retired.pop(entry.place, None)
        case Ended():
            lineage.ended = entry


def _go_back(lineage: Lineage, step: int) -> None:
    """Drops the records after the step from which a run continues."""
    for later in [saved for saved in lineage.saved if saved > step]:
        _retire(lineage, later)
    for late in [key for key, one in lineage.evaluations.items() if one.step > step]:
        del lineage.evaluations[late]
    for late in {file for file, told in lineage.marks.items() for one in told if one.step > step}:
        if kept := tuple(one for one in lineage.marks[late] if one.step <= step):
            lineage.marks[late] = kept
        else:
            del lineage.marks[late]


def _retire(lineage: Lineage, step: int) -> None:
    if (old := lineage.saved.pop(step, None)) is not None:
        lineage.retired[old.place] = old.digest
