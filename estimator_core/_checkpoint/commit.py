"""Writes one checkpoint, in one process or several together, so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core._checkpoint import catalog, orbax_io
from estimator_core._checkpoint.checksums import check_finite, describe, describe_files
from estimator_core._checkpoint.failures import PassingError, Together
from estimator_core._checkpoint.host_copy import HostArray
from estimator_core._checkpoint.manifest import ArrayEntry, Manifest, Part, dump_json, write_manifest
from estimator_core._checkpoint.shelf import IN_PLACE, Publisher, Shelf
from estimator_core._files import sync_directory, write_durably
from estimator_core._journal.entries import Entry
from estimator_core.coordinator import ALONE, Coordinator
from estimator_core.errors import ProcessLostError

if TYPE_CHECKING:
    from estimator_core._checkpoint.pieces import Base, Pieces

_log = logging.getLogger("estimator_core.checkpoint")

#: The seconds between the first attempt and the second.
_PAUSE_SECS = 0.5


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A host copy of all contents of a checkpoint.

    Args:
        manifest: the manifest, complete except for arrays and files.
        arrays: the host arrays, by item and path.
        files: the JSON values of the files, by file name.
        pieces: the arrays of which this process holds pieces, by item and path. Each process then writes a pack. None:
            a single process writes whole arrays.
        base: the base of an incremental save, which writes only the changes. None: everything is written.
        entries: the entries to record with the checkpoint, if there is a journal.
        superfluous: the steps that no rule keeps after this checkpoint exists.
    """

    manifest: Manifest
    arrays: Mapping[str, Mapping[str, HostArray]]
    files: Mapping[str, Any]
    pieces: Mapping[str, Mapping[str, Pieces]] | None = None
    base: Base | None = None
    entries: Sequence[Entry] = ()
    superfluous: Sequence[int] = ()

    @property
    def bytes(self) -> int:
        """The number of bytes of the arrays."""
        return sum(host.stored.nbytes for named in self.arrays.values() for host in named.values())


def commit(shelf: Shelf, draft: Draft, processes: Coordinator = ALONE, publisher: Publisher = IN_PLACE) -> Path:
    """Writes a checkpoint, and tries once more after a failure that may pass.

    All processes call this for the same step. They see the same outcomes, so all of them make the second attempt.

    Args:
        shelf: the checkpoints directory, which all processes share, or the own one of each process. The shelf of the
            chief publishes.
        draft: the draft of this process: whole arrays in the chief's, named pieces in all.
        processes: the processes that save together.
        publisher: the publisher of this process. A failure of it raises an error in all processes.

    Raises:
        NanLossDuringTrainingError: the state of a process is not finite. Nothing is written.
        CheckpointError: the checkpoint could not be written. The message has the place, the need and the remedy, and
            the process if there are several. Nothing was written, and no other checkpoint has changed.
        SupersededError, StorageGoneError: the run must not continue. Raised in all processes.
        ProcessLostError: a process is lost. The checkpoint does not exist.
    """
    try:
        return _attempt(shelf, draft, processes, publisher)
    except PassingError as failed:
        _log.warning("Writing a checkpoint to %s failed (%s); the write is retried once.", shelf.root, failed.reason)
    time.sleep(_PAUSE_SECS)
    # The first attempt may be recorded. The second then retires it by its digest, so the manifests must differ.
    draft = replace(draft, manifest=replace(draft.manifest, created=time.time()))
    try:
        return _attempt(shelf, draft, processes, publisher)
    except PassingError as failed:
        raise failed.error from failed.error.__cause__


def _attempt(shelf: Shelf, draft: Draft, processes: Coordinator, publisher: Publisher) -> Path:
    step, chief, alone = draft.manifest.step, processes.index == 0, processes.count == 1
    together = Together(processes=processes, root=shelf.root, need=draft.bytes)
    # A unique name for each attempt, because writes of a failed one may still be running inside tensorstore.
    name, place = together.in_chief(
        "save-begin", partial(_begin, shelf, draft), lambda work: [work.name, publisher.place(step)]
    )
    work = shelf.root / name

    def write() -> Part:
        if not chief:
            publisher.begin(work)
        return _write(work, draft, processes.index)

    def sent(part: Part) -> object:
        publisher.send(work, place)
        return part if alone else part.to_json()

    def published(path: Path) -> object:
        publisher.publish(path, place)
        return [path.name, [] if alone else shelf.steps()]

    def followed(_: object) -> None:
        if not chief:
            publisher.follow(work, place, shelf, step, kept)

    try:
        told = together.in_each("save-written", write, sent)
        parts = told if alone else [Part.from_json(one) for one in told]
        name, kept = together.in_chief("save-sealed", partial(_seal, shelf, work, draft, parts), published)
    except BaseException as error:
        # After the loss of a process, the next run removes the remains, because another process may still be writing.
        if not isinstance(error, ProcessLostError):
            with contextlib.suppress(OSError):
                (shelf.discard if chief else publisher.drop)(work)
        raise
    if place:  # if each process has its own directory
        saved = f"checkpoint {step} is saved, but this process could not bring it to its own directory: "
        together.in_each("save-followed", lambda: None, followed, saved)
    return shelf.root / (name if chief else str(step))


def _begin(shelf: Shelf, draft: Draft) -> Path:
    work = shelf.begin(draft.manifest.step)
    if draft.pieces is None:
        _require_space(shelf.root, draft.bytes)
    work.mkdir()
    return work


def _require_space(root: Path, need: int) -> None:
    """Refuses to write if the disk would become full, because that would affect other users of the disk."""
    if shutil.disk_usage(root).free < need:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(root))


def _write(work: Path, draft: Draft, process: int) -> Part:
    if draft.pieces is None:
        return Part(arrays=_write_arrays(work, draft))
    from estimator_core._checkpoint.pieces import write_part

    check_finite(draft.manifest.step, draft.arrays)
    return write_part(work, process, draft.arrays, draft.pieces, draft.base)


def _write_arrays(work: Path, draft: Draft) -> Mapping[str, Mapping[str, ArrayEntry]]:
    stored = {
        item: {path: host.stored for path, host in named.items() if host.stored.size}
        for item, named in draft.arrays.items()
    }
    with ThreadPoolExecutor(1, "checksums") as beside:  # the write mostly waits for the disk
        finite = beside.submit(check_finite, draft.manifest.step, draft.arrays)
        entries = beside.submit(describe, draft.arrays)
        try:
            orbax_io.write_arrays(work / catalog.ARRAYS_DIR, stored)
        finally:
            finite.result()  # a diverged state is the most important error, even if others occur
    return entries.result()


def _seal(shelf: Shelf, work: Path, draft: Draft, parts: Sequence[Part]) -> Path:
    if draft.pieces is None:
        manifest = replace(draft.manifest, arrays=parts[0].arrays)
    else:
        from estimator_core._checkpoint.pieces import manifest_of

        manifest = manifest_of(draft.manifest, parts)
    seal(work, manifest, draft.files)
    return shelf.publish(work, manifest.step, draft.entries, draft.superfluous)


def seal(work: Path, manifest: Manifest, files: Mapping[str, object]) -> None:
    """Writes the files other than the arrays, with the manifest last."""
    for name, value in files.items():
        write_durably(work / name, dump_json(value))
    write_manifest(work, replace(manifest, files=describe_files(work)))
    sync_directory(work)
