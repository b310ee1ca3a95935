"""Checks whether a model_dir contains everything that its journal records, each thing once, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from estimator_core._checkpoint import catalog
from estimator_core._checkpoint.checksums import check_files
from estimator_core._checkpoint.journal_shelf import JournalShelf
from estimator_core._checkpoint.lock import ModelDirLock, is_held
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._journal.derived import (
    differing_results,
    event_files,
    is_written,
    trim_event_files,
    write_results_files,
)
from estimator_core._journal.entries import JournalError, Saved, key_of
from estimator_core._journal.lineage import Lineage
from estimator_core._journal.reading import IDENTITY, identity_of, newest_snapshot, read_lineage, records_after, refresh
from estimator_core._journal.writer import take_over
from estimator_core._storage.contract import Storage, StorageError
from estimator_core._storage.local import LocalStorage
from estimator_core.errors import CheckpointError


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A deviation of a model_dir from its journal.

    Args:
        kind: the kind of the object, in one word.
        path: the path, relative to the model_dir.
        text: the fault and the remedy.
        mendable: whether `repair` corrects it without loss.
    """

    kind: str
    path: str
    text: str
    mendable: bool = False


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The result of a check: the numbers of checked objects, and the findings.

    Args:
        model_dir: the directory or URL.
        records, epochs: the numbers of records and epochs in the journal.
        checkpoints, evaluations, event_files: the numbers of these objects that the journal names.
        under_way: whether a run is training there or, at a URL, was interrupted. Objects that it has not recorded yet
            are not findings.
        findings: the deviations that were found.
    """

    model_dir: str
    records: int
    epochs: int
    checkpoints: int
    evaluations: int
    event_files: int
    under_way: bool
    findings: tuple[Finding, ...]


def audit(model_dir: Path) -> Audit:
    """Checks a model_dir and changes nothing.

    Raises:
        StorageGoneError: the directory does not exist.
    """
    lineage, findings = _replayed(LocalStorage(model_dir))
    under_way = is_held(model_dir)
    if not findings:
        findings += _of_checkpoints(model_dir, lineage, under_way)
        findings += _of_event_files(model_dir, lineage, under_way)
        if not under_way:
            findings += [
                _finding(model_dir, "results", path, "differs from the journal", mendable=True)
                for path, _ in differing_results(model_dir, lineage)
            ]
    return _audit(str(model_dir), lineage, under_way, findings)


def audit_in_store(storage: Storage, faults: Callable[[Storage, Lineage], Iterable[tuple[str, str, str]]]) -> Audit:
    """Checks a model_dir in a store and changes nothing.

    Args:
        storage: the storage of the model_dir.
        faults: a function that returns the kind, the key and the fault of every object that differs from the sum of the
            journal.
    """
    lineage, findings = _replayed(storage)
    if not findings:
        findings += [Finding(kind=kind, path=key, text=text) for kind, key, text in faults(storage, lineage)]
    return _audit(storage.url, lineage, lineage.ended is None, findings)


def _audit(where: str, lineage: Lineage, under_way: bool, findings: Iterable[Finding]) -> Audit:
    return Audit(
        model_dir=where,
        records=lineage.number + 1,
        epochs=lineage.epoch,
        checkpoints=len(lineage.saved),
        evaluations=len(lineage.evaluations),
        event_files=len(lineage.segments),
        under_way=under_way,
        findings=tuple(findings),
    )


def repair(model_dir: Path) -> None:
    """Corrects every fault that can be corrected without loss, as the next run would.

    Raises:
        ModelDirLockedError: a run is training there.
        JournalError: the journal itself is damaged.
    """
    with ModelDirLock(model_dir):
        storage = LocalStorage(model_dir)
        for entry in storage.list("snapshots"):
            if not _is_right(storage, entry.key):
                storage.delete([entry.key])
        before = read_lineage(storage, whole=True)
        journal = take_over(storage, "estimator audit --repair", _highest_step)
        if before.ended is not None:
            journal.publish(before.ended)
        JournalShelf(catalog.checkpoints_dir(model_dir), journal).clean_up()
        trim_event_files(model_dir, journal.lineage, before=journal.epoch, ended=before.ended is not None)
        write_results_files(model_dir, journal.lineage)


def _highest_step(lineage: Lineage) -> int:
    """Returns the step from which a run may continue without revoking any record."""
    steps = [took.step for took in lineage.starts] + [told.step for told in lineage.segments]
    return max([*steps, *lineage.saved, *(step for _, step in lineage.evaluations)], default=0)


def _replayed(storage: Storage) -> tuple[Lineage, list[Finding]]:
    """Returns the sum of all records, added one by one, and the faults of the chain."""
    lineage = Lineage()
    try:
        lineage.identity = identity_of(storage)
    except JournalError as error:
        return lineage, [Finding(kind="journal", path=IDENTITY, text=str(error))]
    if not lineage.identity:
        text = "is missing: no run with a journal has trained here, or a copy is incomplete"
        return lineage, [Finding(kind="journal", path=IDENTITY, text=text)]
    places: set[str] = set()
    try:
        for record in records_after(storage, lineage):
            for saved in (entry for entry in record.entries if isinstance(entry, Saved)):
                if saved.place in places:
                    text = f"names {saved.place}, which an earlier record already names"
                    return lineage, [_of_record(lineage, lineage.number, text)]
                places.add(saved.place)
    except (JournalError, StorageError) as error:
        return lineage, [_of_record(lineage, lineage.number + 1, str(error))]
    last = key_of(lineage.identity, lineage.number)
    beyond = [entry.key for entry in storage.list(f"journal/{lineage.identity}") if entry.key > last]
    findings = [
        Finding(kind="journal", path=key, text="comes after a gap: records before it are lost") for key in beyond
    ]
    if not _is_right(storage, None, lineage):
        text = "the newest snapshot does not match the records"
        findings.append(Finding(kind="journal", path="snapshots", text=text, mendable=True))
    return lineage, findings


def _of_record(lineage: Lineage, number: int, text: str) -> Finding:
    return Finding(kind="journal", path=key_of(lineage.identity, number), text=text)


def _is_right(storage: Storage, key: str | None, whole: Lineage | None = None) -> bool:
    """Returns whether a snapshot (by default the newest) and the records after it have the same sum as all records."""
    try:
        whole = read_lineage(storage, whole=True) if whole is None else whole
        summed = newest_snapshot(storage, whole.identity, key)
        refresh(storage, summed)
    except (JournalError, StorageError):
        return False
    summed.identity = summed.identity or whole.identity
    return summed == whole


def _of_checkpoints(model_dir: Path, lineage: Lineage, under_way: bool) -> Iterator[Finding]:
    found = partial(_finding, model_dir, "checkpoint")
    root = catalog.checkpoints_dir(model_dir)
    known: set[Path] = set()
    for step, saved in sorted(lineage.saved.items()):
        named = root / str(step)
        path = catalog.where_is(root, saved, look_only=True)
        known.add(path or named)
        if path is None:
            what = "differs from what was saved" if named.exists() else "is missing"
            yield found(named, f"{what}: the journal names it")
            continue
        if path != named and not under_way:
            yield found(path, f"was not renamed to {named.name}: a process was killed", mendable=True)
        try:
            check_files(path, read_manifest(path))
        except CheckpointError as error:
            yield found(path, str(error))
    if not under_way and root.is_dir():  # a run that trains has directories that it has not recorded yet
        yield from _of_others(model_dir, lineage, sorted(set(root.iterdir()) - known))


def _of_others(model_dir: Path, lineage: Lineage, paths: Iterable[Path]) -> Iterator[Finding]:
    """Yields the findings about directories beside the checkpoints that the journal names."""
    retired = set(lineage.retired.values())
    for path in paths:
        if catalog.work_epoch(path.name) is not None:
            digest = catalog.manifest_digest(path)
            dead = path.name.startswith(catalog.WRITING) or digest is None or digest in retired
            yield _finding(model_dir, "leftover", path, "left by an interrupted run", mendable=dead)
        elif catalog.is_step(path.name):
            dead = catalog.manifest_digest(path) in retired
            unknown = "is not used: no run of this model_dir has saved it there"
            text = "is retired and was not deleted" if dead else unknown
            yield _finding(model_dir, "checkpoint", path, text, mendable=dead)


def _of_event_files(model_dir: Path, lineage: Lineage, under_way: bool) -> Iterator[Finding]:
    counted = {model_dir / told.directory / told.name: told.size for told in lineage.segments}
    for name, epoch in event_files(model_dir):
        if under_way and epoch >= lineage.epoch:
            continue
        path = Path(name)
        size, found = counted.get(path, 0), path.stat().st_size
        if found > size and not is_written(path):
            text = f"has {found - size} bytes beyond the {size} that the journal counts: a run was interrupted"
            yield _finding(model_dir, "event file", path, text, mendable=True)
    for path, size in counted.items():
        found = path.stat().st_size if path.is_file() else 0
        if found < size:
            text = f"has {found} of the {size} bytes that the journal counts: some points are lost"
            yield _finding(model_dir, "event file", path, text)


def _finding(model_dir: Path, kind: str, path: Path, text: str, *, mendable: bool = False) -> Finding:
    return Finding(kind=kind, path=path.relative_to(model_dir).as_posix(), text=text, mendable=mendable)
