"""Opens the storage of a path or URL: the scheme says which component."""

from __future__ import annotations

import os
import re
from pathlib import Path

from estimator_core._plugins import Plugins
from estimator_core._storage.contract import Storage
from estimator_core._storage.local import LocalStorage
from estimator_core.errors import ArgumentError, PluginLookupError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
#: Schemes that a package of the house serves.
_HOUSE = ("s3", "gs", "az", "abfs", "abfss")


def is_url(location: str) -> bool:
    """Whether a location is a URL and not a path.

    Example:
        >>> is_url("s3://bucket/run"), is_url("runs/one")
        (True, False)
    """
    return _URL.match(location) is not None


def open_storage(location: str | os.PathLike[str], plugins: Plugins | None = None) -> Storage:
    """The storage at a path of this machine, or at a URL.

    Args:
        location: a directory, which is made where it is not there; or `scheme://…`.
        plugins: where a component of kind `storage` named by the scheme is looked up; default: the installed ones.

    Raises:
        ArgumentError: no installed package serves the scheme.
        StorageError: it cannot be opened.

    Example:
        >>> import tempfile
        >>> list(open_storage(tempfile.mkdtemp()).list(""))
        []
    """
    text = os.fspath(location)
    match = _URL.match(text)
    if match is None or match[1] == "file":
        path = Path(text.removeprefix("file://")).expanduser()
        path.mkdir(parents=True, exist_ok=True)
        return LocalStorage(path)
    scheme = match[1].lower()
    try:
        make = (plugins or Plugins()).get("storage", scheme)
    except PluginLookupError as error:
        install = "; pip install estimator-storage" if scheme in _HOUSE else ""
        raise ArgumentError(
            f"{text}: no installed package brings storage for {scheme}://{install}. ({error})"
        ) from error
    return make(text)
