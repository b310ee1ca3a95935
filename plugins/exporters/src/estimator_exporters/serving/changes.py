"""Detects changed files by their metadata. For example, a mounted Secret is replaced by a link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

Stamp = tuple[int, int, int] | None


def changes(paths: Sequence[Path]) -> Callable[[], bool]:
    """Returns a function that reports whether a file changed since its last call, or at first since this one.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "tokens.json")
        >>> changed = changes([path])
        >>> _ = path.write_text("[]")
        >>> changed(), changed()
        (True, False)
    """
    known = [_stamp(path) for path in paths]

    def changed() -> bool:
        nonlocal known
        before, known = known, [_stamp(path) for path in paths]
        return known != before

    return changed


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
