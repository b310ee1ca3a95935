"""The search for files of one name in a directory and below it, including the targets of symbolic links."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path


def files_below(place: Path, name: str) -> tuple[list[Path], list[str]]:
    """Returns the files by path, and a line for each directory that cannot be read.

    Directories next to or below a found file are not reported, because their content concerns only its reader.

    Each directory is read once, by its own path before that of a link, so links that form a circle do no harm. A link
    to a directory above the place is not followed, because it would lead over the whole disk and back to the place.

    Args:
        place: the directory. For a file or a missing path, the result is empty.
        name: the name of the files.

    Raises:
        OSError: the directory itself cannot be read.
    """
    found: list[Path] = []
    faults: dict[Path, str] = {}
    seen = set[tuple[int, int]]()
    waiting, links = [place], list[Path]()
    above = set(Path(os.path.realpath(place)).parents)
    while waiting or links:
        folder = waiting.pop() if waiting else links.pop(0)
        try:
            about = folder.stat()
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            entries = _entries(folder)
        except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
            continue
        except OSError as error:
            if folder == place:
                raise
            if error.errno == errno.ELOOP:  # a link to itself has no target
                continue
            faults[folder] = f"{folder} cannot be read: {error.strerror}."
            continue
        for entry in entries:
            if entry.name == name:
                found.append(folder / name)
            elif entry.is_symlink():
                if Path(os.path.realpath(folder / entry.name)) not in above:
                    links.append(folder / entry.name)
            elif entry.is_dir():
                waiting.append(folder / entry.name)
    holders = {path.parent for path in found}
    return sorted(found), [text for folder, text in sorted(faults.items()) if holders.isdisjoint(folder.parents)]


def _entries(folder: Path) -> Sequence[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
