"""Downloads checkpoints of a model_dir in an object store to this machine."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from estimator_core.checkpoint import manifest_digest, read_checkpoint
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError
from estimator_core.journal import Lineage, Saved, lease, read_lineage, refresh
from estimator_core.plugins import Plugins
from estimator_core.storage import (
    ObjectMissingError,
    Storage,
    StorageDeniedError,
    StorageError,
    StorageGoneError,
    is_url,
    open_storage,
)
from estimator_storage.at_urls.directories import download_directory
from estimator_storage.at_urls.kept_exports import MANIFEST
from estimator_storage.at_urls.scratch import scratch_directory

_log = logging.getLogger("estimator_core.storage")

CHECKPOINTS = "checkpoints"
#: A key below a place of `new_place`. Other objects in `data` belong to the user.
_OF_A_CHECKPOINT = re.compile(r"data/[0-9a-f]{32}/e\d{10}-\d{10}-[0-9a-f]{32}/")
#: The largest number of objects in `data` that are examined where there is no journal.
_EXAMINED = 1000
_ONE = re.compile(rf"(.+)/{CHECKPOINTS}/(\d+)")


def fetched(location: str, plugins: Plugins | None, *, manifests: bool) -> Path:
    """Returns a copy of checkpoints. It is removed when the process ends.

    Args:
        location: the URL of a model_dir, or `<model_dir>/checkpoints/<step>`, where no run writes.
        plugins: where the storage is looked up.
        manifests: brings the manifests of all checkpoints of a model_dir, without arrays, and not the newest one.

    Returns:
        The path of a checkpoint, or of a directory with a directory `checkpoints`, depending on the URL.

    Raises:
        CheckpointNotFoundError: no run has recorded such a checkpoint.
        CheckpointCorruptError: the checkpoint differs from the record.
        CheckpointError: the model_dir was written at a path.
        StorageError, JournalError: the store or the journal cannot be read.
    """
    here = location.rstrip("/")
    one = _ONE.fullmatch(here)
    url = one[1] if one else here.removesuffix(f"/{CHECKPOINTS}")
    if url != here and _is_model_dir(here, plugins):
        one, url = None, here
    try:
        storage = open_storage(url, plugins, make=False)
    except StorageGoneError as error:
        raise CheckpointNotFoundError(f"There is no checkpoint at {location}. {error}") from None
    lineage = read_here(storage)
    steps = [int(one[2])] if one else sorted(lineage.saved)
    if not steps or not lineage.saved.keys() >= set(steps):
        kept = ", ".join(map(str, sorted(lineage.saved))) or "none"
        raise CheckpointNotFoundError(
            f"There is no checkpoint at {location}. The journal of {url} names the steps {kept}."
        )
    holder = scratch_directory("checkpoints")

    def target(saved: Saved) -> Path:
        return holder / CHECKPOINTS / str(saved.step)

    def brings(saved: Saved) -> bool:
        return bring(storage, lineage, saved, target(saved), "reader")

    if manifests:
        whole = all(_bring_manifest(storage, lineage.saved[step], target(lineage.saved[step])) for step in steps)
    elif one:
        whole = brings(lineage.saved[steps[0]])
    else:
        whole = bring_newest(storage, lineage, set(), brings) is not None
    if not whole:  # a run has retired it in the meantime
        return fetched(location, plugins, manifests=manifests)
    return target(lineage.saved[steps[0]]) if one else holder


def _is_model_dir(location: str, plugins: Plugins | None) -> bool:
    """Whether a run writes to this URL itself. A model_dir may be called `checkpoints`, or `checkpoints/5`."""
    try:
        return read_lineage(open_storage(location, plugins, make=False)).number >= 0
    except StorageError:
        return False


def bring_newest(
    storage: Storage, lineage: Lineage, damaged: set[str], brings: Callable[[Saved], bool]
) -> Saved | None:
    """Downloads the newest intact checkpoint, and reports the damaged ones. Returns None if there is no checkpoint.

    Args:
        storage: the storage of the model_dir.
        lineage: the sum of its journal. `brings` updates it.
        damaged: the places of checkpoints that are known to be damaged. The function adds new ones.
        brings: the function that downloads a checkpoint. It returns False if the checkpoint was retired in the
            meantime, so that the journal names others.

    Raises:
        CheckpointCorruptError: every checkpoint is damaged. A start from scratch would lose the run.
        StorageError: the store cannot be read.
    """
    while left := [saved for saved in lineage.saved.values() if saved.place not in damaged]:
        newest = max(left, key=lambda saved: saved.step)
        try:
            if brings(newest):
                return newest
        except CheckpointCorruptError as error:
            damaged.add(newest.place)
            _log.error("DAMAGED CHECKPOINT: %s The previous checkpoint is tried.", error)
    if lineage.saved:
        raise CheckpointCorruptError(
            f"All checkpoints of {storage.url} are damaged: {', '.join(map(str, sorted(lineage.saved)))}. Restore one "
            "from a copy, or delete them to start from scratch."
        )
    return None


def read_here(storage: Storage) -> Lineage:
    """Returns the sum of the journal of a model_dir that was written through a URL.

    Raises:
        CheckpointError, StorageError, JournalError: as `check_written_here`, or the journal cannot be read.
    """
    lineage = read_lineage(storage)
    check_written_here(storage, lineage)
    return lineage


def check_written_here(storage: Storage, lineage: Lineage) -> None:
    """Refuses a model_dir with checkpoints that a run saved at a path, because such a run ignores leases.

    Also refuses one that has lost its journal, because only the journal says which checkpoints count.

    Args:
        storage: the storage of the model_dir.
        lineage: the sum of its journal.

    Raises:
        CheckpointError: the model_dir was written at a path, or copied from one. Or it has data of checkpoints, but no
            journal.
    """
    if lineage.number < 0:  # an older release may have written it
        at_path = any(storage.list(CHECKPOINTS))
        # A run that starts now may have written its journal, and then its data, since the journal was read.
        some = itertools.islice(storage.list("data"), _EXAMINED)
        if any(_OF_A_CHECKPOINT.match(entry.key) for entry in some) and read_lineage(storage).number < 0:
            raise CheckpointError(
                f"{storage.url} has data of checkpoints, but no journal that says which of them count. Restore "
                "`journal` and `identity` from a copy of the model_dir, or give the run another place."
            )
    else:
        at_path = any(saved.place.startswith(f"{CHECKPOINTS}/") for saved in lineage.saved.values())
    if at_path:
        way = (
            "Copy it to a directory of this machine and name the copy."
            if is_url(storage.url)
            else f"Name it without file://: {storage.url}."
        )
        raise CheckpointError(f"{storage.url} was written at a path, so it cannot be used through a URL. {way}")


def bring(storage: Storage, lineage: Lineage, saved: Saved, target: Path, reader: str, *, without: str = "") -> bool:
    """Copies a checkpoint to this machine and verifies it. Returns False if it was retired in the meantime.

    A damaged copy is downloaded once more, because the transfer may be the cause.

    Args:
        storage: the storage of the model_dir.
        lineage: the sum of its journal. The function may update it.
        saved: the checkpoint.
        target: the path of the copy. It must not exist.
        reader: the name of the reader, for people who look at the leases.
        without: an ending. Files with this ending stay in the store, and their reader verifies them.

    Raises:
        CheckpointCorruptError: the checkpoint differs from the record, or is missing.
        StorageError: the checkpoint cannot be read.
    """
    try:
        return _bring(storage, lineage, saved, target, reader, without=without)
    except CheckpointCorruptError as error:
        _log.warning("%s It is read again.", error)
        return _bring(storage, lineage, saved, target, reader, without=without)


def _bring(storage: Storage, lineage: Lineage, saved: Saved, target: Path, reader: str, *, without: str) -> bool:
    try:
        held = lease(storage, lineage, saved.place, reader)
    except StorageDeniedError:  # read permission only: without a lease, files that are removed meanwhile raise an error
        held = contextlib.nullcontext()
    if held is None:
        return False
    try:
        with held:
            download_directory(storage, saved.place, target, without=without)
    except ObjectMissingError as error:
        refresh(storage, lineage)
        if saved not in lineage.saved.values():
            return False
        raise _damaged(storage, saved, str(error)) from error
    _check(storage, saved, target)
    if not without:
        try:
            read_checkpoint(target)
        except CheckpointCorruptError as error:
            shutil.rmtree(target)
            raise _damaged(storage, saved, str(error)) from error
    return True


def _bring_manifest(storage: Storage, saved: Saved, target: Path) -> bool:
    """Copies the manifest of a checkpoint, which names its arrays. Returns False if it was retired in the meantime."""
    try:
        body = storage.get(f"{saved.place}/{MANIFEST}")
    except ObjectMissingError:
        if saved.step in read_lineage(storage).saved:
            raise
        return False
    target.mkdir(parents=True)
    (target / MANIFEST).write_bytes(body)
    _check(storage, saved, target)
    return True


def _check(storage: Storage, saved: Saved, target: Path) -> None:
    if manifest_digest(target) != saved.digest:
        shutil.rmtree(target)
        raise _damaged(storage, saved, "Its manifest differs.")


def _damaged(storage: Storage, saved: Saved, why: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(
        f"{storage.url}: the checkpoint of step {saved.step} ({saved.place}) differs from what was recorded. {why}"
    )
