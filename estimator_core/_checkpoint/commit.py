"""Writes one checkpoint so that it appears whole or not at all, and explains why it could not be written."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from estimator_core._checkpoint import catalog, orbax_io
from estimator_core._checkpoint.checksums import check_finite, describe, describe_files
from estimator_core._checkpoint.host_copy import HostArray
from estimator_core._checkpoint.manifest import Manifest, dump_json, write_manifest
from estimator_core._checkpoint.shelf import Shelf
from estimator_core._files import sync_directory, write_durably
from estimator_core._journal.entries import Entry
from estimator_core.errors import CheckpointError, EstimatorError

_log = logging.getLogger("estimator_core.checkpoint")

_CURES: dict[int | None, str] = {
    errno.ENOSPC: "Free some space, or keep fewer checkpoints (RunConfig.keep_checkpoint_max); then start again.",
    errno.EDQUOT: "The quota is used up. Free some space, or keep fewer checkpoints (RunConfig.keep_checkpoint_max).",
    errno.EROFS: "The file system is read-only. Use a model_dir that can be written.",
    errno.EACCES: "This user may not write there. Change the permissions, or use another model_dir.",
    errno.EPERM: "This user may not write there. Change the permissions, or use another model_dir.",
    errno.ENOENT: "The directory was deleted or renamed during use. Leave model_dir alone while a run writes to it.",
    errno.EMFILE: "Too many open files: raise the limit (ulimit -n).",
}
#: The same errors in the words of tensorstore, with which orbax writes.
_WORDS = {
    "no space left": errno.ENOSPC,
    "resource_exhausted": errno.ENOSPC,
    "quota exceeded": errno.EDQUOT,
    "read-only file system": errno.EROFS,
    "permission denied": errno.EACCES,
    "permission_denied": errno.EACCES,
    "too many open files": errno.EMFILE,
    "no such file": errno.ENOENT,
    "not_found": errno.ENOENT,
}


@contextmanager
def explained(root: Path, need: int) -> Generator[None]:
    """Turns errors of the file system or of orbax into a CheckpointError. Errors of this framework pass unchanged.

    Args:
        root: the checkpoints directory.
        need: the number of bytes to write, for the message.
    """
    try:
        yield
    except EstimatorError as raised:
        from estimator_core._storage.contract import StorageError

        if not isinstance(raised, StorageError) or not isinstance(raised.__cause__, OSError):
            raise
        raise _failed(root, need, raised.__cause__) from raised
    except Exception as error:
        raise _failed(root, need, error) from error


@contextmanager
def placed(directory: Path) -> Generator[None]:
    """Adds the place and the remedy if the file system reports only that it is full or read-only.

    Other errors without a file name may come from the user's input, so they pass unchanged.

    Raises:
        OSError: the file system is full or read-only. The error has the same number and notes, and the directory.
    """
    try:
        yield
    except OSError as error:
        code = error.errno
        if code not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS) or error.filename is not None:
            raise
        words = f"{os.strerror(code)}{_free(directory)}. Checkpoints are untouched. {_CURES[code]}"
        named = OSError(code, words, str(directory))
        for note in getattr(error, "__notes__", ()):
            named.add_note(note)
        raise named from error


def errno_of(error: BaseException) -> int | None:
    """Returns the error number of an exception of the file system or of tensorstore, if it is known."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    text = str(error).lower()
    return next((code for words, code in _WORDS.items() if words in text), None)


def brief(error: BaseException) -> str:
    """Returns an error in one line, because tensorstore's messages fill pages."""
    code, text = errno_of(error), " ".join(str(error).split())
    reason = "" if code is None or os.strerror(code).lower() in text[:200].lower() else f"{os.strerror(code)}; "
    return f"{reason}{type(error).__name__}: {text[:200]}{'...' if len(text) > 200 else ''}"


def _free(root: Path) -> str:
    place = next((p for p in (root, *root.parents) if p.exists()), root)
    try:
        return f", {shutil.disk_usage(place).free / 1e6:,.1f} MB are free"
    except OSError:
        return ""


def _failed(root: Path, need: int, error: Exception) -> CheckpointError:
    code = errno_of(error)
    cure = _CURES.get(code, "See the cause above.")
    return CheckpointError(
        f"A checkpoint could not be written to {root} ({brief(error)}). It needs {need / 1e6:,.1f} MB{_free(root)}. "
        f"Existing checkpoints are untouched. {cure}"
    )


#: The seconds between the first attempt and the second.
_PAUSE_SECS = 0.5


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A host copy of all contents of a checkpoint.

    Args:
        manifest: the manifest, complete except for arrays and files.
        arrays: the host arrays, by item and path.
        files: the JSON values of the files, by file name.
        entries: the entries to record with the checkpoint, if there is a journal.
        superfluous: the steps that no rule keeps after this checkpoint exists.
    """

    manifest: Manifest
    arrays: Mapping[str, Mapping[str, HostArray]]
    files: Mapping[str, Any]
    entries: Sequence[Entry] = ()
    superfluous: Sequence[int] = ()

    @property
    def bytes(self) -> int:
        """The number of bytes of the arrays."""
        return sum(host.stored.nbytes for named in self.arrays.values() for host in named.values())

    def of_run(self, created: float, packages: Mapping[str, str]) -> Draft:
        """Returns the draft with the Unix time of the run's first save and the versions of the packages that write."""
        return replace(self, manifest=replace(self.manifest, run_created=created, packages=packages))


def commit_or_explain(shelf: Shelf, draft: Draft) -> Path:
    """Calls `commit`, and tries once more after a failure that may be temporary.

    Raises:
        NanLossDuringTrainingError: the state is not finite. Nothing is written.
        CheckpointError: the checkpoint could not be written. The message has the place, the need and the remedy.
            Nothing was written, and no other checkpoint has changed.
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
            _log.warning("Writing a checkpoint to %s failed (%s); the write is retried once.", root, brief(error))
            time.sleep(_PAUSE_SECS)
            return commit(shelf, draft)


def commit(shelf: Shelf, draft: Draft) -> Path:
    """Writes a checkpoint under a unique name, seals its manifest, and then publishes it.

    Raises:
        NanLossDuringTrainingError: the state is not finite. Nothing is written.
        OSError, ValueError: errors of the file system or of orbax. The written files are removed, and no other
            checkpoint has changed.
    """
    step = draft.manifest.step
    # A unique name for each attempt, because writes of a failed one may still be running inside tensorstore.
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
    """Refuses to write if the disk would become full, because that would affect other users of the disk."""
    if shutil.disk_usage(root).free < need:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(root))


def _write(work: Path, draft: Draft) -> None:
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
    seal(work, replace(draft.manifest, arrays=entries.result()), draft.files)


def seal(work: Path, manifest: Manifest, files: Mapping[str, object]) -> None:
    """Writes the files other than the arrays, with the manifest last."""
    for name, value in files.items():
        write_durably(work / name, dump_json(value))
    write_manifest(work, replace(manifest, files=describe_files(work)))
    sync_directory(work)
