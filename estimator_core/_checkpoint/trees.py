"""Directories that are deleted as a whole."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Deletes a directory if it is there."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)
