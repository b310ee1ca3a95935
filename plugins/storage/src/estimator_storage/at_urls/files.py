"""Copies files and directories at a URL to and from this machine."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Generator
from pathlib import Path

from estimator_core.plugins import Plugins
from estimator_core.storage import ObjectMissingError, Storage, StorageGoneError, open_storage
from estimator_storage.at_urls.directories import download_directory, download_file, upload_file
from estimator_storage.at_urls.scratch import scratch_directory

_PATTERN = frozenset("*?[")


def local_copy(url: str, plugins: Plugins | None) -> Path:
    """Returns a copy of a directory that is removed when the process ends; see `estimator_core.storage.local_copy`."""
    url = url.rstrip("/")
    with contextlib.closing(_readable(url, plugins, f"There is nothing at {url}.")) as storage:
        # The last part of the path keeps its name, because it identifies an export.
        return download_directory(storage, "", Path(scratch_directory("copy"), url.rpartition("/")[2]))


def copied_files(url: str, plugins: Plugins | None) -> list[Path]:
    """Returns copies of the files at a URL, in the order of the keys; see `estimator_core.storage.copied_files`."""
    base, wanted = _split(url)
    with contextlib.closing(_readable(base, plugins, f"No file matches {url}.")) as storage:
        found = list(storage.list(""))
        # If a file has exactly this name, brackets in it are not a pattern, as at a path.
        entries = [entry for entry in found if entry.key.split("/") == wanted]
        entries = entries or [entry for entry in found if _matches(entry.key.split("/"), wanted)]
        if not entries:
            raise ObjectMissingError(f"No file matches {url}.")
        here = scratch_directory("copy")
        for entry in entries:
            download_file(storage, entry, here / entry.key)
    return [here / entry.key for entry in entries]


@contextlib.contextmanager
def published_file(url: str, plugins: Plugins | None) -> Generator[Path]:
    """Yields a path whose file is uploaded to the URL at the end; see `estimator_core.storage.published_file`."""
    base, _, name = url.rpartition("/")
    with contextlib.closing(open_storage(base, plugins)) as storage:
        path = scratch_directory("output") / name
        yield path
        upload_file(storage, name, path, size=path.stat().st_size)
        path.unlink()


def _readable(url: str, plugins: Plugins | None, missing: str) -> Storage:
    """Returns the storage of a URL, for reading.

    Raises:
        ObjectMissingError: the URL is a directory of this machine that does not exist.
    """
    try:
        return open_storage(url, plugins, make=False)
    except StorageGoneError as error:
        raise ObjectMissingError(f"{missing} {error}") from None


def _split(location: str) -> tuple[str, list[str]]:
    """Returns the URL of the directory, and the parts of the pattern below it."""
    scheme, _, rest = location.partition("://")
    parts = rest.split("/")
    fixed = next((index for index, part in enumerate(parts) if _PATTERN & set(part)), len(parts) - 1)
    fixed = max(min(fixed, len(parts) - 1), 1)
    return f"{scheme}://{'/'.join(parts[:fixed])}", parts[fixed:]


def _matches(parts: list[str], wanted: list[str]) -> bool:
    """Returns whether a key matches like `glob`: a hidden name matches only a pattern that begins with a dot."""
    if not parts or not wanted:
        return parts == wanted
    first, hidden = wanted[0], parts[0].startswith(".")
    if first == "**":
        return _matches(parts, wanted[1:] or ["*"]) or (not hidden and _matches(parts[1:], wanted))
    matches = fnmatch.fnmatchcase(parts[0], first) and (not hidden or first.startswith("."))
    return matches and _matches(parts[1:], wanted[1:])
