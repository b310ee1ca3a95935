"""Temporary directories of this machine that are removed when the process ends."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def scratch_directory(purpose: str) -> Path:
    """Creates and returns an empty directory. It is removed when this process ends, but not when a child of it ends.

    Args:
        purpose: a part of its name, for people who look for the cause of a full disk.

    Example:
        >>> scratch_directory("copy").name.startswith("estimator-copy-")
        True
    """
    path = Path(tempfile.mkdtemp(prefix=f"estimator-{purpose}-"))
    atexit.register(_remove, path, os.getpid())
    return path


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
