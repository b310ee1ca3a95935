"""Writing one checkpoint from several processes, so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from estimator_core._checkpoint.checks import check_finite
from estimator_core._checkpoint.commit import Draft, seal
from estimator_core._checkpoint.incremental import Base, share_of
from estimator_core._checkpoint.manifest import FORMAT, ArrayEntry
from estimator_core._checkpoint.pieces import Pieces, checksums, entries_of, host_pieces, merge_entries
from estimator_core._checkpoint.shelf import Shelf
from estimator_core._checkpoint.write_errors import explained
from estimator_core._cluster.together import chief_says, gather
from estimator_core._packs.entry import PackEntry, pack_name
from estimator_core._packs.write import write_pack
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
    shelf: Shelf, draft: Draft, pieces: _Pieces, processes: Coordinator, base: Base | None = None
) -> Path:
    """Every process writes what it holds; the chief seals and renames. Called by all, for the same step.

    Args:
        shelf: of the checkpoints directory, which all processes see; the chief's publishes.
        draft: of this process: whole arrays in the chief's, pieces under their names in all.
        pieces: what this process holds pieces of, by item and path.
        processes: those that save together.
        base: what only the changes are written to; None: everything is written.

    Raises:
        NanLossDuringTrainingError: the state is not finite somewhere; nothing is written.
        CheckpointError: a process could not write; says which, and why. No other checkpoint is touched.
        ProcessLostError: a process is gone; the checkpoint is not there.
    """
    step, root = draft.manifest.step, shelf.root
    begun = chief_says(processes, "save-begin", _begin(shelf, step) if processes.index == 0 else None)
    _raise_failures([begun], step)
    work = root / begun["name"]
    try:
        told = gather(processes, "save-written", _write_own(work, draft, pieces, processes.index, base))
        _raise_failures(told, step)
        sealed = chief_says(processes, "save-sealed", _seal(shelf, work, draft, told) if processes.index == 0 else None)
        _raise_failures([sealed], step)
    except BaseException as error:
        # With a process gone, the next run removes what is left: another one may be writing still.
        if processes.index == 0 and not isinstance(error, ProcessLostError):
            with contextlib.suppress(OSError):
                shelf.discard(work)
        raise
    return root / str(step)


def _begin(shelf: Shelf, step: int) -> _Outcome:
    try:
        with explained(shelf.root, 0):
            work = shelf.begin(step)
            work.mkdir()
    except EstimatorError as error:
        return _failure(error)
    return {"name": work.name}


def _write_own(work: Path, draft: Draft, pieces: _Pieces, process: int, base: Base | None) -> _Outcome:
    try:
        check_finite(draft.manifest.step, draft.arrays)
        with explained(work.parent, draft.bytes):
            share = share_of(work, process, host_pieces(draft.arrays, pieces), base)
            packs, index = share.linked, share.unchanged
            if any(piece.array.size for piece in share.pieces):
                pack, written = write_pack(LocalStorage(work), pack_name(process), share.pieces)
                packs, index = [pack, *packs], [*written, *index]
        entries = {
            item: {path: entry.to_json() for path, entry in named.items()}
            for item, named in {**entries_of(draft.arrays, pieces), **share.entries}.items()
        }
    except Exception as error:
        return _failure(error)
    return {"packs": [pack.to_json() for pack in packs], "arrays": entries, "checksums": checksums(index)}


def _seal(shelf: Shelf, work: Path, draft: Draft, told: list[_Outcome]) -> _Outcome:
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
            shelf.publish(work, manifest.step, draft.entries, draft.superfluous)
    except Exception as error:
        return _failure(error)
    return {}


def _failure(error: Exception) -> _Outcome:
    return {
        "error": str(error),
        "not_finite": isinstance(error, NanLossDuringTrainingError),
        "superseded": isinstance(error, SupersededError),
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
    raise CheckpointError(f"Process {process}: {first['error']}")
