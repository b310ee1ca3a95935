"""Time-stamped export directories, which appear complete or not at all, and the destination of an export."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Callable, Generator
from pathlib import Path

from estimator_core._files import draft_name, is_url, remove_left
from estimator_core._plugins import Plugins
from estimator_core._storage.opening import at_url
from estimator_core.errors import ArgumentError


def destination(base: str, plugins: Plugins) -> Callable[[Callable[[Path], Path]], str]:
    """Returns a function that calls a writer of an export with a base directory, and returns the final path or URL of
    the export.

    Args:
        base: a path or a URL, below which the export gets its time-stamped name.
        plugins: the registry that provides the storage of a URL.

    Raises:
        ArgumentError: no installed package supports the scheme of the URL. Nothing has been written.

    Example:
        >>> place = destination("exports", Plugins())
        >>> place(lambda base: base / "1700000000")
        'exports/1700000000'
    """
    if not is_url(base):
        return lambda write: str(write(Path(base)))
    place: Callable[[Callable[[Path], Path]], str] = at_url(base, plugins).export_place(base.rstrip("/"), plugins)
    return place


_TEMPORARY = "temp-"


def exports_in(base: str | os.PathLike[str]) -> list[Path]:
    """Returns the complete exports of a directory, oldest first, with `~` expanded.

    The name of an export is ten digits: seconds since the epoch.
    """
    base = Path(os.path.expanduser(base))
    try:
        names = [name for name in os.listdir(base) if name.isascii() and name.isdigit() and len(name) == 10]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [base / name for name in sorted(names, key=int)]


def latest_export(base: str | os.PathLike[str]) -> str | None:
    """Returns the newest export in a directory, or in the directories of exporters below it.

    Example:
        >>> latest_export("no/such/directory") is None
        True
    """
    base = Path(os.path.expanduser(base))
    own = exports_in(base)
    if own:
        return str(own[-1])
    try:
        below = [path for child in base.iterdir() if child.is_dir() for path in exports_in(child)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    return str(max(below, key=lambda path: (int(path.name), path.stat().st_mtime_ns))) if below else None


@contextlib.contextmanager
def new_export(base: str | os.PathLike[str]) -> Generator[tuple[Path, list[Path]]]:
    """Yields a directory to write into, and a list that contains the final path after the block.

    The rename is the commit.

    First removes the remains of killed writers of this machine.

    Raises:
        ArgumentError: the directory, or one above it, is a file.
    """
    root = Path(base)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        file = next((path for path in (root, *root.parents) if path.is_file()), root)
        raise ArgumentError(f"Exports go into a directory, but {file} is a file.") from error
    remove_left(root, _TEMPORARY)
    temporary = root / draft_name(_TEMPORARY)
    temporary.mkdir()
    final: list[Path] = []
    try:
        yield temporary, final
        final.append(_commit(root, temporary))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def collect_garbage(base: str | os.PathLike[str], keep: int | None) -> list[Path]:
    """Deletes all but the newest exports and returns the deleted paths. None keeps all."""
    deleted: list[Path] = []
    if keep is not None:
        for path in exports_in(base)[:-keep]:
            remove_export(path)
            deleted.append(path)
    return deleted


def remove_export(path: Path) -> None:
    """Deletes an export. It is renamed first, so that readers do not open a part of it."""
    doomed = path.with_name(draft_name(_TEMPORARY))
    with contextlib.suppress(FileNotFoundError):
        path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _commit(root: Path, temporary: Path) -> Path:
    """Renames the export to the current second, or to one more than the newest export if that is ahead of the clock."""
    stamp = int(time.time())
    while True:
        stamp = max([stamp, *(int(path.name) + 1 for path in exports_in(root)[-1:])])
        target = root / str(stamp)
        try:
            temporary.rename(target)  # fails if another writer was faster, since exports are not empty
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            stamp += 1
        else:
            return target
