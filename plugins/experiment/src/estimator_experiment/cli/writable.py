"""The check whether a command can write its results, before they are computed."""

from __future__ import annotations

import os
from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_core.storage import is_url


def check_writable(what: str, folder: str, *, cure: str) -> None:
    """Checks that a directory, or the parent in which it would be created, can be written.

    Args:
        what: the content of the directory, for the message.
        folder: a directory of this machine. A URL is not checked.
        cure: the end of the message.

    Raises:
        ArgumentError: the directory cannot be written, or is a file.
    """
    if is_url(folder):
        return
    place = next((each for each in (Path(folder), *Path(folder).parents) if each.exists()), Path())
    if not place.is_dir():
        raise ArgumentError(f"{what} {folder}, but {place} is a file. {cure}")
    if not os.access(place, os.W_OK):
        raise ArgumentError(f"{what} {folder}, but {place} cannot be written. {cure}")
