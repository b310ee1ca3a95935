"""Explains why a checkpoint could not be written, and whether a second attempt may help."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from estimator_core._storage.contract import StorageError
from estimator_core.errors import CheckpointError, EstimatorError

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
    except Exception as error:
        cause = error.__cause__ if isinstance(error, StorageError) else error
        if not isinstance(cause, Exception) or isinstance(cause, EstimatorError):
            raise
        raise _failed(root, need, cause) from error


#: The free bytes below which a file system counts as full.
_FULL = 1 << 20


@contextmanager
def placed(directory: Path) -> Generator[None]:
    """Adds the place and the remedy to an error without a file name, if the file system of the directory is full or
    read-only. Otherwise the error is one of another place, such as a file of the user's input, and passes unchanged.

    Raises:
        OSError: the same error, with the directory.
    """
    try:
        yield
    except OSError as error:
        full = error.errno == errno.ENOSPC and shutil.disk_usage(directory).free < _FULL
        if error.filename is None and (full or (error.errno == errno.EROFS and not os.access(directory, os.W_OK))):
            cure = _CURES[error.errno]
            error.strerror = f"{error.strerror}{_free(directory)}. Checkpoints are untouched. {cure}"
            error.filename = str(directory)
        raise


def errno_of(error: BaseException) -> int | None:
    """Returns the error number of an exception of the file system or of tensorstore, if it is known."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    text = str(error).lower()
    return next((code for words, code in _WORDS.items() if words in text), None)


def may_pass(error: BaseException) -> bool:
    """Returns whether a second attempt may succeed. Missing permissions stay, and so do errors of this framework."""
    return not isinstance(error, EstimatorError) and errno_of(error) not in (errno.EROFS, errno.EACCES, errno.EPERM)


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
        f"Existing checkpoints are untouched. The next training continues from the newest. {cure}"
    )
