"""Copies what is at a URL to a directory of this machine, for readers that need files."""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Generator
from pathlib import Path

from estimator_core._paths import is_url
from estimator_core._plugins import Plugins
from estimator_core._storage.contract import ObjectMissingError
from estimator_core._storage.opening import open_storage
from estimator_core._storage.scratch import scratch_directory
from estimator_core._storage.transfer import download_directory, download_file, upload_file

_PATTERN = frozenset("*?[")


def local_copy(location: str | os.PathLike[str], plugins: Plugins | None = None) -> Path:
    """A path as it is; of a URL, a copy that goes when the process ends.

    Args:
        location: a path of this machine, or the URL of a directory.
        plugins: where the storage of the URL is looked up; default: the installed ones.

    Raises:
        ArgumentError: no installed package serves the scheme.
        ObjectMissingError: there is nothing at the URL.
        StorageError: it cannot be read.

    Example:
        >>> local_copy("exports/1700000000").as_posix()
        'exports/1700000000'
    """
    text = os.fspath(location)
    if not is_url(text):
        return Path(location)
    storage = open_storage(text.rstrip("/"), plugins)
    holder = scratch_directory("copy")
    try:
        # The last part keeps its name: exports are told apart by it.
        return download_directory(storage, "", Path(holder, text.rstrip("/").rpartition("/")[2]))
    finally:
        storage.close()


def copied_files(location: str, plugins: Plugins | None = None) -> list[Path]:
    """Copies the files of a URL to this machine; the copies go when the process ends.

    The directory of the URL is listed with all that is below it.

    Args:
        location: the URL of a file, or of several: `*`, `?` and `[...]` match within one part of it.
        plugins: where the storage of the URL is looked up; default: the installed ones.

    Returns:
        The copies, each with the name of its file, in the order of the keys.

    Raises:
        ArgumentError: no installed package serves the scheme.
        ObjectMissingError: no file matches.
        StorageError: a file cannot be read.

    Example:
        >>> import tempfile
        >>> where = Path(tempfile.mkdtemp())
        >>> _ = (where / "a.csv").write_text("x"), (where / "b.csv").write_text("x")
        >>> [copy.name for copy in copied_files(f"file://{where}/*.csv")]
        ['a.csv', 'b.csv']
    """
    base, wanted = _split(location)
    with contextlib.closing(open_storage(base, plugins)) as storage:
        entries = [entry for entry in storage.list("") if _matches(entry.key, wanted)]
        if not entries:
            raise ObjectMissingError(f"No file matches {location}.")
        here = scratch_directory("copy")
        for entry in entries:
            download_file(storage, entry, here / entry.key)
    return [here / entry.key for entry in entries]


@contextlib.contextmanager
def published_file(location: str | os.PathLike[str], plugins: Plugins | None = None) -> Generator[Path]:
    """A path to write a file to. Where the location is a URL, the file goes there once the block ends without an error.

    Args:
        location: a path of this machine, which is handed out as it is, or the URL of a file.
        plugins: where the storage of the URL is looked up; default: the installed ones.

    Raises:
        ArgumentError: no installed package serves the scheme; nothing has been written.
        StorageError: the file cannot be written there.

    Example:
        >>> import tempfile
        >>> where = tempfile.mkdtemp()
        >>> with published_file(f"file://{where}/scores.csv") as path:
        ...     _ = path.write_text("score")
        >>> Path(where, "scores.csv").read_text()
        'score'
    """
    text = os.fspath(location)
    if not is_url(text):
        yield Path(location)
        return
    base, _, name = text.rpartition("/")
    with contextlib.closing(open_storage(base, plugins)) as storage:
        path = scratch_directory("output") / name
        yield path
        upload_file(storage, name, path, size=path.stat().st_size)
        path.unlink()


def _split(location: str) -> tuple[str, list[str]]:
    """The URL of the directory, and the parts of the pattern below it."""
    scheme, _, rest = location.partition("://")
    parts = rest.split("/")
    fixed = next((index for index, part in enumerate(parts) if _PATTERN & set(part)), len(parts) - 1)
    fixed = max(min(fixed, len(parts) - 1), 1)
    return f"{scheme}://{'/'.join(parts[:fixed])}", parts[fixed:]


def _matches(key: str, wanted: list[str]) -> bool:
    parts = key.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))
