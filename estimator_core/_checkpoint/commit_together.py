"""Writes one checkpoint from several processes, so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from estimator_core._checkpoint.checksums import check_finite
from estimator_core._checkpoint.commit import Draft, explained, seal
from estimator_core._checkpoint.manifest import FORMAT, ArrayEntry
from estimator_core._checkpoint.pieces import Base, Pieces, checksums, entries_of, host_pieces, merge_entries, share_of
from estimator_core._checkpoint.shelf import IN_PLACE, Publisher, Shelf
from estimator_core._cluster.processes import chief_says, gather
from estimator_core._packs.entry import PackEntry, pack_name
from estimator_core._packs.write import write_pack
from estimator_core._storage.contract import StorageGoneError
from estimator_core._storage.local import LocalStorage
from estimator_core.coordinator import Coordinator
from estimator_core.errors import (
    CheckpointError,
    EstimatorError,
    NanLossDuringTrainingError,
    ProcessLostError,
    SupersededError,
)

_Outcome = dict[str, Any]
_Pieces = Mapping[str, Mapping[str, Pieces]]


def commit_together(
    shelf: Shelf,
    draft: Draft,
    pieces: _Pieces,
    processes: Coordinator,
    base: Base | None = None,
    publisher: Publisher = IN_PLACE,
) -> Path:
    """Writes the part of every process. The chief seals and publishes the checkpoint. All processes call this for the
    same step.

    Args:
        shelf: the checkpoints directory, which all processes share, or the own one of each process. The shelf of the
            chief publishes.
        draft: the draft of this process: whole arrays in the chief's, named pieces in all.
        pieces: the arrays of which this process holds pieces, by item and path.
        processes: the processes that save together.
        base: the base of an incremental save, which writes only the changes. None: everything is written.
        publisher: the publisher of this process. A failure of it raises an error in all processes.

    Raises:
        NanLossDuringTrainingError: the state of a process is not finite. Nothing is written.
        CheckpointError: a process could not write its part or copy it to its place. The message names the process and
            the reason. No other checkpoint has changed.
        SupersededError, StorageGoneError: the run must not continue. Raised in all processes.
        ProcessLostError: a process is lost. The checkpoint does not exist.
    """
    step, root = draft.manifest.step, shelf.root
    begun = chief_says(processes, "save-begin", _begin(shelf, step, publisher) if processes.index == 0 else None)
    _raise_failures([begun], step)
    work, place, chief = root / begun["name"], begun["place"], processes.index == 0
    try:
        own = _write_own(work, place, draft, pieces, processes.index, base, publisher)
        told = gather(processes, "save-written", own)
        _raise_failures(told, step)
        sealed = chief_says(
            processes, "save-sealed", _seal(shelf, work, place, draft, told, publisher) if chief else None
        )
        _raise_failures([sealed], step)
    except BaseException as error:
        # After the loss of a process, the next run removes the remains, because another process may still be writing.
        if not isinstance(error, ProcessLostError):
            with contextlib.suppress(OSError):
                (shelf.discard if chief else publisher.drop)(work)
        raise
    if place:  # if each process has its own directory
        followed = {} if chief else _follow(publisher, work, place, shelf, step, sealed["kept"])
        _raise_failures(gather(processes, "save-followed", followed), step)
    return root / str(step)


def _begin(shelf: Shelf, step: int, publisher: Publisher) -> _Outcome:
    try:
        with explained(shelf.root, 0):
            work = shelf.begin(step)
            work.mkdir()
    except EstimatorError as error:
        return _failure(error)
    return {"name": work.name, "place": publisher.place(step)}


def _write_own(
    work: Path, place: str, draft: Draft, pieces: _Pieces, process: int, base: Base | None, publisher: Publisher
) -> _Outcome:
    try:
        check_finite(draft.manifest.step, draft.arrays)
        with explained(work.parent, draft.bytes):
            if process != 0:
                publisher.begin(work)
            share = share_of(work, process, host_pieces(draft.arrays, pieces), base)
            packs, index = share.linked, share.unchanged
            if any(piece.array.size for piece in share.pieces):
                pack, written = write_pack(LocalStorage(work), pack_name(process), share.pieces)
                packs, index = [pack, *packs], [*written, *index]
        publisher.send(work, place)
        entries = {
            item: {path: entry.to_json() for path, entry in named.items()}
            for item, named in {**entries_of(draft.arrays, pieces), **share.entries}.items()
        }
    except Exception as error:
        return _failure(error)
    return {"packs": [pack.to_json() for pack in packs], "arrays": entries, "checksums": checksums(index)}


def _seal(shelf: Shelf, work: Path, place: str, draft: Draft, told: list[_Outcome], publisher: Publisher) -> _Outcome:
    entries = [
        {
            item: {path: ArrayEntry.from_json(entry) for path, entry in named.items()}
            for item, named in one["arrays"].items()
        }
        for one in told
    ]
    manifest = replace(
        draft.manifest,
        arrays=merge_entries(entries, [one["checksums"] for one in told]),
        packs=tuple(PackEntry.from_json(pack) for one in told for pack in one["packs"]),
        format=FORMAT,
    )
    try:
        with explained(shelf.root, draft.bytes):
            seal(work, manifest, draft.files)
            path = shelf.publish(work, manifest.step, draft.entries, draft.superfluous)
        publisher.publish(path, place)
    except Exception as error:
        return _failure(error)
    return {"kept": shelf.steps()}


def _follow(publisher: Publisher, work: Path, place: str, shelf: Shelf, step: int, kept: list[int]) -> _Outcome:
    try:
        publisher.follow(work, place, shelf, step, kept)
    except Exception as error:
        told = f"checkpoint {step} is saved, but this process could not bring it to its own directory: {error}"
        return {**_failure(error), "error": told}
    return {}


def _failure(error: Exception) -> _Outcome:
    return {
        "error": str(error),
        "not_finite": isinstance(error, NanLossDuringTrainingError),
        "superseded": isinstance(error, SupersededError),
        "gone": isinstance(error, StorageGoneError),
    }


def _raise_failures(outcomes: list[_Outcome], step: int) -> None:
    failed = [(process, one) for process, one in enumerate(outcomes) if "error" in one]
    if not failed:
        return
    process, first = failed[0]
    if first["not_finite"]:
        raise NanLossDuringTrainingError(first["error"], step)
    if first["superseded"]:
        raise SupersededError(first["error"])
    if first["gone"]:
        raise StorageGoneError(first["error"])
    raise CheckpointError(f"Process {process}: {first['error']}")
