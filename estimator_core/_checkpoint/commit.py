"""Writing one checkpoint so that it appears whole or not at all."""

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
from pathlib import Path
from typing import Any

from estimator_core._checkpoint import layout, orbax_io
from estimator_core._checkpoint.checks import check_finite, describe
from estimator_core._checkpoint.file_checks import describe_files
from estimator_core._checkpoint.files import sync_directory, write_durably
from estimator_core._checkpoint.host_copy import HostArray
from estimator_core._checkpoint.manifest import Manifest, dump_json, write_manifest
from estimator_core._checkpoint.shelf import Shelf
from estimator_core._checkpoint.write_errors import brief, errno_of, explained
from estimator_core._journal import Entry
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
        entries: what is recorded with it, where there is a journal.
        superfluous: steps that no rule keeps once this one is there.
    """

    manifest: Manifest
    arrays: Mapping[str, Mapping[str, HostArray]]
    files: Mapping[str, Any]
    entries: Sequence[Entry] = ()
    superfluous: Sequence[int] = ()

    @property
    def bytes(self) -> int:
        """Size of the arrays."""
        return sum(host.stored.nbytes for named in self.arrays.values() for host in named.values())

    def of_run(self, created: float, packages: Mapping[str, str]) -> Draft:
        """The same, with the Unix time of the run's first save and the versions of what writes it."""
        return replace(self, manifest=replace(self.manifest, run_created=created, packages=packages))


def commit_or_explain(shelf: Shelf, draft: Draft) -> Path:
    """`commit`, tried once more after a failure that may pass.

    Raises:
        NanLossDuringTrainingError: the state is not finite; nothing is written.
        CheckpointError: names the place, the need and what to do; nothing was written and no other checkpoint touched.
    """
    root = shelf.root
    with explained(root, draft.bytes):
        try:
            return commit(shelf, draft)
        except EstimatorError:
            raise
        except Exception as error:
            if errno_of(error) in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            _log.warning("Writing a checkpoint to %s failed (%s); it is tried once more.", root, brief(error))
            time.sleep(_PAUSE_SECS)
            return commit(shelf, draft)


def commit(shelf: Shelf, draft: Draft) -> Path:
    """Writes a checkpoint under a name of its own and, with its manifest sealed, publishes it.

    Raises:
        NanLossDuringTrainingError: the state is not finite; nothing is written.
        OSError, ValueError: whatever the file system or orbax raised; what was written is removed, and no other
            checkpoint is touched.
    """
    step = draft.manifest.step
    check_finite(step, draft.arrays)
    # A name of its own for each attempt: writes of a failed one may still be under way inside tensorstore.
    work = shelf.begin(step)
    try:
        _require_space(shelf.root, draft.bytes)
        work.mkdir()
        _write(work, draft)
        return shelf.publish(work, step, draft.entries, draft.superfluous)
    except BaseException:
        with contextlib.suppress(OSError):
            shelf.discard(work)
        raise


def _require_space(root: Path, need: int) -> None:
    """Refuses before the disk is filled up to the last byte, which would hurt others too."""
    if shutil.disk_usage(root).free < need:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(root))


def _write(work: Path, draft: Draft) -> None:
    stored = {
        item: {path: host.stored for path, host in named.items() if host.stored.size}
        for item, named in draft.arrays.items()
    }
    with ThreadPoolExecutor(1, "checksums") as beside:  # the write waits for the disk most of the time
        entries = beside.submit(describe, draft.arrays)
        orbax_io.write_arrays(work / layout.ARRAYS_DIR, stored)
    seal(work, replace(draft.manifest, arrays=entries.result()), draft.files)


def seal(work: Path, manifest: Manifest, files: Mapping[str, object]) -> None:
    """Writes what stands beside the arrays, the manifest last."""
    for name, value in files.items():
        write_durably(work / name, dump_json(value))
    write_manifest(work, replace(manifest, files=describe_files(work)))
    sync_directory(work)
