"""Checkpoints of a model_dir in an object store, brought to this machine."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from estimator_core.checkpoint import manifest_digest
from estimator_core.errors import CheckpointCorruptError, CheckpointNotFoundError
from estimator_core.journal import Lineage, Saved, lease, read_lineage
from estimator_core.storage import Storage, StorageDeniedError, download_directory, scratch_directory

CHECKPOINTS = "checkpoints"


def fetched(storage: Storage, step: int | None, *, every: bool) -> Path:
    """A copy of checkpoints, which goes when the process ends.

    Args:
        storage: of the model_dir.
        step: of the one that is wanted; None: the newest.
        every: brings all of them instead of the newest.

    Returns:
        The checkpoint of the step, or a directory with a directory `checkpoints`.

    Raises:
        CheckpointNotFoundError: no run has recorded such a checkpoint.
        CheckpointCorruptError: it is not what was recorded.
        StorageError, JournalError: it cannot be read.
    """
    lineage = read_lineage(storage)
    steps = sorted(lineage.saved)[0 if every else -1 :] if step is None else [step]
    if not steps or not lineage.saved.keys() >= set(steps):
        kept = ", ".join(map(str, sorted(lineage.saved))) or "none"
        place = storage.url if step is None else f"{storage.url}/{CHECKPOINTS}/{step}"
        raise CheckpointNotFoundError(
            f"There is no checkpoint at {place}. The journal of {storage.url} names the steps {kept}."
        )
    holder = scratch_directory("checkpoints")
    for one in steps:
        saved = lineage.saved.get(one)
        if saved is None or not bring(storage, lineage, saved, holder / CHECKPOINTS / str(one), "reader"):
            return fetched(storage, step, every=every)  # a run has retired it meanwhile
    return holder if step is None else holder / CHECKPOINTS / str(step)


def bring(storage: Storage, lineage: Lineage, saved: Saved, target: Path, reader: str, *, without: str = "") -> bool:
    """Copies a checkpoint to this machine; False if it has been retired meanwhile.

    Args:
        storage: of the model_dir.
        lineage: what its journal came to; brought up to date.
        saved: the checkpoint.
        target: must not exist.
        reader: who reads, for people who look at the leases.
        without: files with this ending stay in the store.

    Raises:
        CheckpointCorruptError: it is not what was recorded.
        StorageError: it cannot be read.
    """
    try:
        held = lease(storage, lineage, saved.place, reader)
    except StorageDeniedError:  # it may only read: data that goes meanwhile is missing, and that is said
        held = contextlib.nullcontext()
    if held is None:
        return False
    with held:
        download_directory(storage, saved.place, target, without=without)
    if manifest_digest(target) != saved.digest:
        shutil.rmtree(target)
        raise CheckpointCorruptError(
            f"{storage.url}: the checkpoint of step {saved.step} ({saved.place}) is not what was recorded."
        )
    return True
