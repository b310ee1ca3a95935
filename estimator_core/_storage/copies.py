"""Provides local files to readers and writers, for paths and URLs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path

from estimator_core._files import expanded, is_url, located
from estimator_core._plugins import Plugins
from estimator_core._storage.opening import at_url


def local_copy(location: str | os.PathLike[str], plugins: Plugins | None = None) -> Path:
    """Returns a path with `~` expanded. For a URL, it is a local copy that is removed when the process ends.

    Args:
        location: a path of this machine, or the URL of a directory.
        plugins: the registry that provides the storage of the URL. Default: the installed plugins.

    Raises:
        ArgumentError: no installed package supports the scheme.
        ObjectMissingError: the URL does not exist.
        StorageError: the URL cannot be read.

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
    """Copies the files of a URL to this machine. The copies are removed when the process ends.

    The directory of the URL is listed recursively.

    Args:
        location: the URL of a file, or of several: `*`, `?` and `[...]` match within one part of it, and `**` matches
            any number of parts. As in a path, they do not match hidden names.
        plugins: the registry that provides the storage of the URL. Default: the installed plugins.

    Returns:
        The copies, with the names of the files, in the order of the keys.

    Raises:
        ArgumentError: no installed package supports the scheme.
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
    """Yields a path at which to write a file. For a URL, the file is uploaded when the block ends without an error.

    Args:
        location: a path of this machine, in which `~` is expanded, or the URL of a file.
        plugins: the registry that provides the storage of the URL. Default: the installed plugins.

    Raises:
        ArgumentError: no installed package supports the scheme. Nothing has been written.
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
