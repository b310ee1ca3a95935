"""Failures of a save: why a checkpoint could not be written, whether a second attempt may help, and how all processes
learn of it.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from estimator_core._cluster.processes import chief_says, gather
from estimator_core._storage.contract import StorageError, StorageGoneError
from estimator_core.coordinator import Coordinator
from estimator_core.errors import CheckpointError, EstimatorError, NanLossDuringTrainingError, SupersededError

_Outcome = dict[str, Any]

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


@contextmanager
def placed(directory: Path) -> Generator[None]:
    """Adds the remedy to an error of a file in the directory, if its file system takes no more bytes or files.

    Adds also the place to such an error without a file name, if the directory now refuses a file in the same way.
    Otherwise it is an error of another place, such as a file of the user's input, and passes unchanged.

    Raises:
        OSError: the same error, with the place.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        named = error.filename is not None
        within = Path(str(error.filename)).absolute().is_relative_to(directory.absolute())
        if within if named else _refusal(directory) == error.errno:
            error.strerror = f"{error.strerror}{_free(directory)}. Checkpoints are untouched. {_CURES[error.errno]}"
            error.filename = error.filename if named else str(directory)
        raise


#: The errors of a file system that takes no more bytes or files, and the number of bytes that show it.
_REFUSALS, _TRIED = (errno.ENOSPC, errno.EDQUOT, errno.EROFS), 1 << 20


def _refusal(directory: Path) -> int | None:
    """Returns the number of the error with which a file of 1 MiB cannot be written to a directory."""
    try:
        with tempfile.TemporaryFile(dir=directory) as tried:
            tried.write(bytes(_TRIED))
            tried.flush()
            os.fsync(tried.fileno())  # network file systems report a full quota only here
    except OSError as error:
        return error.errno
    return None


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
        free, found = shutil.disk_usage(place).free, os.statvfs(place)
    except (OSError, AttributeError):  # Windows has no statvfs
        return ""
    inodes = ", but no inodes for further files" if found.f_files and not found.f_favail else ""
    return f", {free / 1e6:,.1f} MB are free{inodes}"


def _failed(root: Path, need: int, error: Exception) -> CheckpointError:
    code = errno_of(error)
    cure = _CURES.get(code, "See the cause above.")
    return CheckpointError(
        f"A checkpoint could not be written to {root} ({brief(error)}). It needs {need / 1e6:,.1f} MB{_free(root)}. "
        f"Existing checkpoints are untouched. The next training continues from the newest, if any. {cure}"
    )


_Written = TypeVar("_Written")
#: The errors that keep their type in all processes. Any other is a CheckpointError in the others.
_KINDS = (NanLossDuringTrainingError, SupersededError, StorageGoneError)


class PassingError(Exception):
    """A failure after which a second attempt may succeed. It is raised in all processes, and never to the user.

    Args:
        error: the error to raise after the last attempt.
        reason: the failure in one line.
    """

    def __init__(self, error: Exception, reason: str) -> None:
        super().__init__(reason)
        self.error, self.reason = error, reason


@dataclass(frozen=True, kw_only=True)
class Together:
    """The processes that save one checkpoint.

    Each part of a save has two functions. The first works on files: its errors are explained, and may pass. The second
    receives the result of the first. Its errors are raised as they are, and end the save.

    Args:
        processes: the processes. A single one passes all values on as they are. Those of several are JSON.
        root: the checkpoints directory of this process.
        need: the number of bytes that this process writes.
    """

    processes: Coordinator
    root: Path
    need: int

    def in_each(
        self, topic: str, write: Callable[[], _Written], then: Callable[[_Written], object], failed: str = ""
    ) -> list[Any]:
        """Calls the functions in every process. Returns the results of the second, in order of the processes.

        Args:
            topic: see `Coordinator.agree`.
            write: the first function of this process.
            then: the second one.
            failed: the beginning of the message if this part fails.

        Raises:
            PassingError: the first function failed in a process, and a second attempt may succeed.
            NanLossDuringTrainingError, SupersededError, StorageGoneError: the run must not continue.
            CheckpointError: a process failed. The message names it, if there are several.
            ProcessLostError: a process is lost.
        """
        own, error = self._tried(write, then, failed)
        return self._values(gather(self.processes, topic, own), error)

    def in_chief(self, topic: str, write: Callable[[], _Written], then: Callable[[_Written], object]) -> Any:
        """Calls the functions in process 0. Returns the result of the second in all. See `in_each`."""
        own, error = self._tried(write, then) if self.processes.index == 0 else (None, None)
        return self._values([chief_says(self.processes, topic, own)], error)[0]

    def _tried(
        self, write: Callable[[], _Written], then: Callable[[_Written], object], failed: str = ""
    ) -> tuple[_Outcome, Exception | None]:
        passing = ""
        try:
            with explained(self.root, self.need):
                try:
                    written = write()
                except Exception as error:
                    passing = brief(error) if may_pass(error) else ""
                    raise
            return {"value": then(written)}, None
        except Exception as error:
            kind = next((index for index, kind in enumerate(_KINDS) if isinstance(error, kind)), None)
            step = error.step if isinstance(error, NanLossDuringTrainingError) else None
            return {"error": f"{failed}{error}", "kind": kind, "step": step, "passing": passing}, error

    def _values(self, told: Sequence[_Outcome], own: Exception | None) -> list[Any]:
        failures = [(process, one) for process, one in enumerate(told) if "error" in one]
        if not failures:
            return [one["value"] for one in told]
        process, first = min(failures, key=lambda failure: bool(failure[1]["passing"]))  # one that stays is raised
        error, who = own, ""
        if error is None or self.processes.count > 1:
            who = f"Process {process}: "
            error = _of_all(first, who)
            error.__cause__ = own if process == self.processes.index else None
        raise PassingError(error, f"{who}{first['passing']}") if first["passing"] else error


def _of_all(failure: _Outcome, who: str) -> Exception:
    """Returns the error of one process, to be raised in all."""
    kind, text = failure["kind"], failure["error"]
    if kind is None:
        return CheckpointError(f"{who}{text}")
    return NanLossDuringTrainingError(text, failure["step"]) if kind == 0 else _KINDS[kind](text)
