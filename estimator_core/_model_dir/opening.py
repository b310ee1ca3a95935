"""One working copy a URL and process: Estimators of the same model_dir see the same files."""

from __future__ import annotations

import threading
from pathlib import Path

from estimator_core._model_dir.contract import LocalModelDir, ModelDir
from estimator_core._paths import is_url
from estimator_core._plugins import Plugins

_lock = threading.Lock()
_copies: dict[str, ModelDir] = {}


def model_dir_at(location: str, plugins: Plugins) -> ModelDir:
    """The model_dir at a path or a URL.

    Args:
        location: what the user gave.
        plugins: where the storage of a URL is looked up.

    Raises:
        ArgumentError: no installed package serves the scheme.
        StorageError: it cannot be opened.

    Example:
        >>> model_dir_at("runs/one", Plugins()).path.as_posix()
        'runs/one'
    """
    if not is_url(location):
        return LocalModelDir(Path(location))
    from estimator_core._model_dir.remote import RemoteModelDir
    from estimator_core._storage.opening import open_storage

    url = location.rstrip("/")
    with _lock:
        if url not in _copies:
            _copies[url] = RemoteModelDir(open_storage(url, plugins))
        return _copies[url]
