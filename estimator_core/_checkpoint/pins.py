"""Checkpoints that this process is reading: retention leaves them alone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_changed = threading.Condition()
_readers: Counter[Path] = Counter()


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Keeps a checkpoint from being moved or deleted by a store of this process while the context is open."""
    key = path.absolute()
    with _changed:
        _readers[key] += 1
    try:
        yield
    finally:
        with _changed:
            _readers[key] -= 1
            _changed.notify_all()


def rename_unless_read(path: Path, target: Path) -> bool:
    """Renames a checkpoint; False, and nothing done, while somebody reads it."""
    with _changed:
        if _readers[path.absolute()]:
            return False
        path.rename(target)
        return True


def rename_when_unread(path: Path, target: Path) -> None:
    """Renames a checkpoint as soon as nobody reads it."""
    with _changed:
        _changed.wait_for(lambda: not _readers[path.absolute()])
        path.rename(target)
