"""What lies at a URL, as a directory of this machine: for readers that need files."""

from __future__ import annotations

import os
from pathlib import Path

from estimator_core._paths import is_url
from estimator_core._plugins import Plugins
from estimator_core._storage.opening import open_storage
from estimator_core._storage.scratch import scratch_directory
from estimator_core._storage.transfer import download_directory


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
