"""Files that survive a power cut, and directories that appear whole or not at all and disappear as a whole."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """Writes a new file and flushes it to the disk."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_regular(path: Path) -> bytes:
    """The bytes of a file. A link, a FIFO or a device in its place is refused without waiting for it.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read()


def replace_text(path: Path, draft: Path, text: str) -> None:
    """Writes a file so that readers see either the old text or the new one. `draft` is the path while it is written."""
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def sync_directory(path: Path) -> None:
    """Flushes the names in a directory to the disk, if the system can do that."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Deletes a directory if it is there."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)
