"""The locations of files for other processes: absolute paths, and URLs that are listed without a copy."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Sequence

from estimator_core.storage import StorageGoneError, is_url, open_storage
from estimator_exporters.scoring.read import here, readable


def locations_of(patterns: Sequence[str]) -> list[str]:
    """Returns the files of paths, URLs and glob patterns, each once, in the order of `find`.

    Raises:
        ArgumentError: no file matches, or a file has an unsupported suffix.
        StorageError: a URL cannot be listed.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "b.csv").write_text("x"), (folder / "a.csv").write_text("x")
        >>> [location.rpartition("/")[2] for location in locations_of([f"file://{folder}/*.csv"])]
        ['a.csv', 'b.csv']
    """
    return readable(patterns, _located)


def _located(pattern: str) -> list[str]:
    return _listed(pattern) if is_url(pattern) else [str(path.absolute()) for path in here(pattern)]


def _listed(url: str) -> list[str]:
    """Lists the files that match a URL. A pattern matches within one part of the URL."""
    parts = url.split("/")
    first = next((place for place, part in enumerate(parts) if set("*?[") & set(part)), len(parts) - 1)
    base, wanted = "/".join(parts[:first]), parts[first:]
    try:
        with contextlib.closing(open_storage(base, make=False)) as storage:
            keys = [entry.key for entry in storage.list("")]
    except StorageGoneError:
        return []
    return [f"{base}/{key}" for key in keys if _matches(key.split("/"), wanted)]


def _matches(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))
