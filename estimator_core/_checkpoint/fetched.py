"""Checkpoints of a model_dir in an object store, brought to this machine."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from estimator_core._checkpoint.catalog import latest_checkpoint, manifest_digest
from estimator_core._checkpoint.layout import CHECKPOINTS_DIR
from estimator_core._checkpoint.manifest import MANIFEST_FILE
from estimator_core._journal import Lineage, Saved, read_lineage
from estimator_core._journal.leases import lease
from estimator_core._paths import is_url
from estimator_core._plugins import Plugins
from estimator_core._storage import Storage, StorageDeniedError
from estimator_core._storage.opening import open_storage
from estimator_core._storage.scratch import scratch_directory
from estimator_core._storage.transfer import download_directory
from estimator_core.errors import CheckpointCorruptError, CheckpointNotFoundError

_ONE = re.compile(rf"(.+)/{CHECKPOINTS_DIR}/(\d+)")


def fetched(location: str | os.PathLike[str], *, every: bool = False, plugins: Plugins | None = None) -> Path:
    """A path as it is; of a URL, a copy of what it names, which goes when the process ends.

    Args:
        location: a path; or the URL of a model_dir, or `<model_dir>/checkpoints/<step>`.
        every: brings all checkpoints of a model_dir, and not only the newest.
        plugins: where the storage of a URL is looked up; default: the installed ones.

    Returns:
        A checkpoint, or a directory with a directory `checkpoints`, whichever the URL names.

    Raises:
        ArgumentError: no installed package serves the scheme.
        CheckpointNotFoundError: no run has recorded such a checkpoint.
        CheckpointCorruptError: it is not what was recorded.
        StorageError, JournalError: it cannot be read.

    Example:
        >>> fetched("runs/one").as_posix()
        'runs/one'
    """
    text = os.fspath(location)
    if not is_url(text):
        return Path(location)
    one = _ONE.fullmatch(text.rstrip("/"))
    url = one[1] if one else text.rstrip("/").removesuffix(f"/{CHECKPOINTS_DIR}")
    storage = open_storage(url, plugins)
    lineage = read_lineage(storage)
    steps = [int(one[2])] if one else sorted(lineage.saved)[0 if every else -1 :]
    if not steps or not lineage.saved.keys() >= set(steps):
        kept = ", ".join(map(str, sorted(lineage.saved))) or "none"
        raise CheckpointNotFoundError(f"There is no checkpoint at {text}. The journal of {url} names the steps {kept}.")
    holder = scratch_directory("checkpoints")
    for step in steps:
        saved = lineage.saved.get(step)
        if saved is None or not bring(storage, lineage, saved, holder / CHECKPOINTS_DIR / str(step), "reader"):
            return fetched(location, every=every, plugins=plugins)  # a run has retired it meanwhile
    return holder / CHECKPOINTS_DIR / str(steps[0]) if one else holder


def resolve_checkpoint(path: str | os.PathLike[str]) -> Path:
    """The checkpoint a user means: itself, or the newest one of a model_dir or of its `checkpoints` directory.

    Args:
        path: of either, or a URL: what it names is brought to this machine.

    Raises:
        CheckpointNotFoundError: there is none.
    """
    path = fetched(path)
    if (path / MANIFEST_FILE).exists():
        return path
    newest = latest_checkpoint(path.parent if path.name == CHECKPOINTS_DIR else path)
    if newest is not None:
        return Path(newest)
    raise CheckpointNotFoundError(
        f"There is no checkpoint in {path}. Name a checkpoint (<model_dir>/checkpoints/100) or a model_dir "
        "that a training run has saved to."
    )


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
