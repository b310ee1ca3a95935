"""The checks of the directory of a sweep, a cross-validation or a population: its place and its owner."""

from __future__ import annotations

import os
from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_core.storage import is_url

#: The file by which each kind marks its directory. Both keep trials under the same names.
_NOTES = {"sweep.json": "a sweep", "population.json": "a population"}


def checked_directory(folder: str | os.PathLike[str]) -> Path:
    """Returns a directory of this machine, or one that machines share.

    Raises:
        ArgumentError: it is a URL. Locks and plans cannot be in a store of objects.
    """
    if is_url(os.fspath(folder)):
        raise ArgumentError(
            f"{os.fspath(folder)} is a URL, but locks need a directory of this machine, or one that machines share. "
            "Give such a directory (--dir)."
        )
    return Path(folder)


def check_owner(folder: Path, note: str) -> None:
    """Refuses a directory with trials of another kind, before anything is written.

    Args:
        folder: the directory.
        note: the name of the file by which this kind marks its directory.

    Raises:
        ArgumentError: the file of another kind is there.
    """
    for name, kind in _NOTES.items():
        place = folder / name
        if name != note and place.exists():
            stray = f" If it holds {_NOTES[note]}, delete {place}." if (folder / note).exists() else ""
            raise ArgumentError(f"{folder} holds {kind}, according to {place}. Give another directory (--dir).{stray}")
