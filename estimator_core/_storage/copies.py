"""Files for readers and writers that need them on this machine, wherever they are in the end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path

from estimator_core._paths import expanded, is_url, located
from estimator_core._plugins import Plugins
from estimator_core._storage.opening import at_url


def local_copy(location: str | os.PathLike[str], plugins: Plugins | None = None) -> Path:
    """A path, with `~` expanded; of a URL, a copy that goes when the process ends.

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
    text = expanded(os.fspath(location))
    if not is_url(text):
        return Path(text)
    copy: Path = at_url(text, plugins).local_copy(text, plugins)
    return copy


def copied_files(location: str, plugins: Plugins | None = None) -> list[Path]:
    """Copies the files of a URL to this machine; the copies go when the process ends.

    The directory of the URL is listed with all that is below it.

    Args:
        location: the URL of a file, or of several: `*`, `?` and `[...]` match within one part of it, and `**` matches
            any number of parts. As at a path, they match no hidden names.
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
    url = located(location)
    copies: list[Path] = at_url(url, plugins).copied_files(url, plugins)
    return copies


@contextlib.contextmanager
def published_file(location: str | os.PathLike[str], plugins: Plugins | None = None) -> Generator[Path]:
    """A path to write a file to. Where the location is a URL, the file goes there once the block ends without an error.

    Args:
        location: a path of this machine, which is handed out with `~` expanded, or the URL of a file.
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
    text = expanded(os.fspath(location))
    if not is_url(text):
        yield Path(text)
        return
    published: AbstractContextManager[Path] = at_url(text, plugins).published_file(text, plugins)
    with published as path:
        yield path
