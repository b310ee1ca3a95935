"""Files and directories that appear whole or not at all: until then they have the name of a draft."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Generator
from pathlib import Path

from estimator_core._processes import identity, process_start

#: Beginning of the names of drafts. No part of a storage's key begins with it.
DRAFT = ".draft-"
_NAME = re.compile(r"([0-9a-f]{12})-([0-9]+)-([0-9]*)-[0-9a-f]{32}(?![^.])")
#: Age in seconds of the last change at which a draft of any machine counts as left.
_LEFT_SECS = 7 * 86400


@contextlib.contextmanager
def draft_of(path: str | os.PathLike[str]) -> Generator[Path]:
    """A path to write a file or a directory to. It takes its name once the block ends without an error.

    Readers find the old file or the new one. Any number of processes and machines may write at the same time: the last
    one wins. Drafts that killed writers of this machine have left in the directory are removed.

    Args:
        path: the name that it takes, in a directory that exists. A file there is replaced.

    Yields:
        A path beside it, with the same suffix, at which there is nothing.

    Raises:
        OSError: it cannot be written there, or a directory is there that is not empty.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "scores.csv")
        >>> with draft_of(path) as draft:
        ...     _ = draft.write_text("score")
        ...     path.exists()
        False
        >>> path.read_text()
        'score'
    """
    path = Path(path)
    remove_left(path.parent)
    draft = path.with_name(draft_name() + path.suffix)
    try:
        yield draft
        for file in filter(Path.is_file, (draft, *draft.rglob("*"))):
            flush(file)
        draft.replace(path)
        sync_directory(path.parent)
    finally:
        _remove(draft)


def draft_name(prefix: str = DRAFT) -> str:
    """A new name, in which its writer can be told.

    Example:
        >>> draft_name("temp-").startswith("temp-")
        True
    """
    pid = os.getpid()
    return f"{prefix}{_this_machine(pid)}-{pid}-{identity(pid)[1]}-{uuid.uuid4().hex}"


def remove_left(directory: Path, prefix: str = DRAFT) -> None:
    """Removes drafts whose writers on this machine are gone, and those that nobody has changed for a week."""
    with contextlib.suppress(OSError):  # writing says what is wrong with the directory
        for name in os.listdir(directory):
            if name.startswith(prefix) and (found := _NAME.match(name, len(prefix))):
                left = time.time() - (directory / name).lstat().st_mtime > _LEFT_SECS
                if found[1] == _this_machine(os.getpid()):
                    left = process_start(int(found[2])) != found[3]
                if left:
                    _remove(directory / name)


def sync_directory(path: Path) -> None:
    """Flushes the names in a directory to the disk, if the system can do that."""
    with contextlib.suppress(OSError):
        flush(path)


def _this_machine(pid: int) -> str:
    return hashlib.sha256(identity(pid)[0].encode()).hexdigest()[:12]


def flush(path: Path) -> None:
    """Flushes a file, or the names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)  # it does nothing to a file
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
