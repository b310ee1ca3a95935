"""Opens the storage of a path or URL: the scheme says which component."""

from __future__ import annotations

import os
from pathlib import Path

from estimator_core._paths import scheme_of
from estimator_core._plugins import Plugins
from estimator_core._storage.contract import Storage
from estimator_core._storage.local import LocalStorage
from estimator_core.errors import ArgumentError, PluginLookupError

#: Schemes that a package of the house serves.
_HOUSE = ("s3", "gs", "az", "abfs", "abfss")


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
    scheme = scheme_of(text)
    if scheme in ("", "file"):
        path = Path(text.removeprefix("file://")).expanduser()
        path.mkdir(parents=True, exist_ok=True)
        return LocalStorage(path)
    try:
        make = (plugins or Plugins()).get("storage", scheme)
    except PluginLookupError as error:
        install = "; pip install estimator-storage" if scheme in _HOUSE else ""
        raise ArgumentError(
            f"{text}: no installed package brings storage for {scheme}://{install}. ({error})"
        ) from error
    return make(text)
