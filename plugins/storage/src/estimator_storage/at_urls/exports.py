"""Writes exports on this machine, and copies them to a URL after they were checked."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from estimator_core.plugins import Plugins
from estimator_core.storage import ObjectExistsError, OutcomeUnknownError, Storage, open_storage
from estimator_storage.at_urls.directories import upload_directory

#: The manifest of the formats of this project. It is written last, so that an export counts only once it is complete.
_MANIFEST = "manifest.json"


def export_place(url: str, plugins: Plugins) -> Callable[[Callable[[Path], Path]], str]:
    """Returns a function from the writer of an export below a directory to the URL of the copied export.

    Args:
        url: the URL below which the export gets its time-stamped name.
        plugins: the plugins that provide the storage.
    """
    storage = open_storage(url, plugins)

    def place(write: Callable[[Path], Path]) -> str:
        with tempfile.TemporaryDirectory(prefix="estimator-export-") as here:
            written = write(Path(here))
            name = _claimed(storage, int(written.name))
            upload_directory(storage, name, written, last=_MANIFEST)
        return f"{url}/{name}"

    return place


def _claimed(storage: Storage, stamp: int) -> str:
    """Claims and returns a name that no other process has or gets, and that is later than the existing ones."""
    taken = [int(name) for entry in storage.list("claims") if (name := entry.key.rpartition("/")[2]).isdecimal()]
    stamp = max([stamp, *(one + 1 for one in taken)])
    while True:
        try:
            storage.put_new(f"claims/{stamp}", b"")
        except (ObjectExistsError, OutcomeUnknownError):  # the claim may belong to another process
            stamp += 1
        else:
            return str(stamp)
