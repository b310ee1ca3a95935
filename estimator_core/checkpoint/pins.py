"""Checkpoints that this process is reading: retention leaves them alone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_lock = threading.Lock()
_readers: Counter[Path] = Counter()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Keeps a checkpoint from being deleted by a store of this process while the context is open."""
    key = path.absolute()
    with _lock:
        _readers[key] += 1
    try:
        yield
    finally:
        with _lock:
            _readers[key] -= 1
            if not _readers[key]:
                del _readers[key]


def rename_unless_read(path: Path, target: Path) -> bool:
    """Renames a checkpoint; False, and nothing done, while somebody reads it."""
    with _lock:
        if path.absolute() in _readers:
            return False
        path.rename(target)
        return True
