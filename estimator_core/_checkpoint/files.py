"""Files that survive a power cut, and directories that appear whole or not at all and disappear as a whole."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path

from estimator_core._drafts import flush


def write_durably(path: Path, data: bytes) -> None:
    """Writes a new file and flushes it to the disk."""
    path.write_bytes(data)
    flush(path)


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


def remove_tree(path: Path) -> None:
    """Deletes a directory if it is there."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)
