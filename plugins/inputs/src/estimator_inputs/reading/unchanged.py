"""Refuses files that are written to while they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from estimator_core.errors import InputError
from estimator_inputs.reading.blocks import FileKind, Piece, Place


class _Version(NamedTuple):
    """A version of a file. A file that another one replaced has another number, and its open rows stay the same."""

    number: tuple[int, int]
    size: int
    time: int


class Unchanged:
    """The version of a file before it is read.

    Args:
        path: the path of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first = _version_of(path)

    def check(self, *, just_opened: bool = False, at_end: bool = False) -> None:
        """Compares the file with its version before.

        Args:
            just_opened: whether the file was opened long after this object was made, so that it must also be the same
                file.
            at_end: whether all pieces were read and checked. Another time alone then concerns none of their rows.

        Raises:
            InputError: the file was written to. Its rows would be of two versions.
        """
        first, now = self._first, _version_of(self._path)
        if first is None or now is None or now == first:
            return
        if now.number != first.number:
            if just_opened:
                raise InputError(f"{self._path} was replaced after its rows were counted. Start again.")
            return
        if at_end and now.size == first.size:
            return
        size = f"its size was {first.size:,} bytes and is {now.size:,}" if now.size != first.size else "its time is new"
        raise InputError(
            f"{self._path} was written to while it was read ({size}), so its rows would be of two versions. Start "
            "again. Write new rows to another file, which may then be renamed to this one (os.replace)."
        )


def pieces_of(kind: FileKind, path: Path, place: Place) -> Iterator[Piece]:
    """Yields the pieces of a file from a place on, like `FileKind.pieces`.

    Raises:
        InputError: the file was written to after the first piece was requested.
    """
    file = Unchanged(path)
    try:
        for piece in kind.pieces(path, place):
            file.check()
            yield piece
    except InputError:
        file.check()  # a file of two versions often looks damaged
        raise
    file.check(at_end=True)


def _version_of(path: Path) -> _Version | None:
    """Returns the present version of a file, or None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return _Version((found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns)
