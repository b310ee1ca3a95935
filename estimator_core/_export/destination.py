"""Where an export goes: a directory of this machine, or a URL, to which it is copied once it is checked."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from estimator_core._paths import is_url
from estimator_core._plugins import Plugins
from estimator_core._storage import ObjectExistsError, OutcomeUnknownError, Storage
from estimator_core._storage.opening import open_storage
from estimator_core._storage.transfer import upload_directory

#: Of the house formats: written last, so that an export counts only once it is complete.
_MANIFEST = "manifest.json"


def destination(base: str, plugins: Plugins) -> Callable[[Callable[[Path], Path]], str]:
    """A function that takes what writes an export below a directory, and returns where the export lies in the end.

    Args:
        base: a path or a URL, in which the export gets its time-stamped name.
        plugins: where the storage of a URL is looked up.

    Raises:
        ArgumentError: no installed package serves the scheme; nothing has been written.

    Example:
        >>> place = destination("exports", Plugins())
        >>> place(lambda base: base / "1700000000")
        'exports/1700000000'
    """
    if not is_url(base):
        return lambda write: str(write(Path(base)))
    url = base.rstrip("/")
    storage = open_storage(url, plugins)

    def place(write: Callable[[Path], Path]) -> str:
        with tempfile.TemporaryDirectory(prefix="estimator-export-") as here:
            written = write(Path(here))
            name = _claimed(storage, int(written.name))
            upload_directory(storage, name, written, last=_MANIFEST)
        return f"{url}/{name}"

    return place


def _claimed(storage: Storage, stamp: int) -> str:
    """A name that nobody else has or gets, and that is later than those there are."""
    taken = [int(name) for entry in storage.list("claims") if (name := entry.key.rpartition("/")[2]).isdecimal()]
    stamp = max([stamp, *(one + 1 for one in taken)])
    while True:
        try:
            storage.put_new(f"claims/{stamp}", b"")
        except (ObjectExistsError, OutcomeUnknownError):  # unknown whose it is: another number costs nothing
            stamp += 1
        else:
            return str(stamp)
