"""Writing one checkpoint so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from estimator_core._checkpoint import layout, orbax_io
from estimator_core._checkpoint.checks import check_finite, describe
from estimator_core._checkpoint.file_checks import describe_files
from estimator_core._checkpoint.files import sync_directory, write_durably
from estimator_core._checkpoint.host_copy import HostArray
from estimator_core._checkpoint.manifest import Manifest, dump_json, write_manifest
from estimator_core._checkpoint.pins import rename_when_unread
from estimator_core._checkpoint.write_errors import brief, errno_of, explained
from estimator_core.errors import EstimatorError

_log = logging.getLogger("estimator_core.checkpoint")
#: Between the first attempt and the second.
_PAUSE_SECS = 0.5


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A host copy of everything that goes into a checkpoint.

    Args:
        manifest: complete but for arrays and files.
        arrays: item -> path -> host array.
        files: name -> JSON value.
    """

    manifest: Manifest
    arrays: Mapping[str, Mapping[str, HostArray]]
    files: Mapping[str, Any]

    @property
    def bytes(self) -> int:
        """Size of the arrays."""
        return sum(host.stored.nbytes for named in self.arrays.values() for host in named.values())

    def of_run(self, created: float, packages: Mapping[str, str]) -> Draft:
        """The same, with the Unix time of the run's first save and the versions of what writes it."""
        return replace(self, manifest=replace(self.manifest, run_created=created, packages=packages))


def commit_or_explain(root: Path, draft: Draft) -> Path:
    """`commit`, tried once more after a failure that may pass.

    Raises:
        NanLossDuringTrainingError: the state is not finite; nothing is written.
        CheckpointError: names the place, the need and what to do; nothing was written and no other checkpoint touched.
    """
    with explained(root, draft.bytes):
        try:
            return commit(root, draft)
        except EstimatorError:
            raise
        except Exception as error:
            if errno_of(error) in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            _log.warning("Writing a checkpoint to %s failed (%s); it is tried once more.", root, brief(error))
            time.sleep(_PAUSE_SECS)
            return commit(root, draft)


def commit(root: Path, draft: Draft) -> Path:
    """Writes `<root>/<step>`: first under another name, then, with its manifest sealed, by renaming.

    Raises:
        NanLossDuringTrainingError: the state is not finite; nothing is written.
        OSError, ValueError: whatever the file system or orbax raised; what was written is removed, and no other
            checkpoint is touched.
    """
    step = draft.manifest.step
    check_finite(step, draft.arrays)
    manifest = replace(draft.manifest, arrays=describe(draft.arrays))
    root.mkdir(parents=True, exist_ok=True)
    _require_space(root, draft.bytes)
    # A name of its own for each attempt: writes of a failed one may still be under way inside tensorstore.
    work = root / f"{layout.WRITING}{step}-{uuid.uuid4().hex[:8]}"
    try:
        work.mkdir()
        _write(work, manifest, draft)
        return publish(root, work, step)
    except BaseException:
        with contextlib.suppress(OSError):
            remove_tree(work)
        raise


def clean_up(root: Path) -> None:
    """Removes what an interrupted process left: half-written and half-deleted checkpoints.

    Only the owner of the model_dir may call it.
    """
    if not root.is_dir():
        return
    for path in sorted(root.iterdir()):
        if path.name.startswith(layout.REPLACED):
            original = root / path.name.removeprefix(layout.REPLACED)
            if not original.exists():
                path.rename(original)
                _log.warning("Brought back checkpoint %s: its replacement was interrupted.", original)
                continue
        elif not path.name.startswith((layout.WRITING, layout.DELETING)):
            continue
        remove_tree(path)
        _log.info("Removed %s, left by an interrupted save.", path)


def remove_tree(path: Path) -> None:
    """Deletes a directory if it is there."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


def _require_space(root: Path, need: int) -> None:
    """Refuses before the disk is filled up to the last byte, which would hurt others too."""
    if shutil.disk_usage(root).free < need:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(root))


def _write(work: Path, manifest: Manifest, draft: Draft) -> None:
    stored = {
        item: {path: host.stored for path, host in named.items() if host.stored.size}
        for item, named in draft.arrays.items()
    }
    orbax_io.write_arrays(work / layout.ARRAYS_DIR, stored)
    seal(work, manifest, draft.files)


def seal(work: Path, manifest: Manifest, files: Mapping[str, Any]) -> None:
    """Writes what stands beside the arrays, the manifest last."""
    for name, value in files.items():
        write_durably(work / name, dump_json(value))
    write_manifest(work, replace(manifest, files=describe_files(work)))
    sync_directory(work)


def publish(root: Path, work: Path, step: int) -> Path:
    """Gives a sealed directory the name of a checkpoint."""
    target = root / str(step)
    aside = root / f"{layout.REPLACED}{step}"
    if target.exists():  # a resumed run saves the step it starts from again
        remove_tree(aside)
        rename_when_unread(target, aside)
    work.rename(target)
    sync_directory(root)
    remove_tree(aside)
    return target
