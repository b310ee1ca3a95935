"""Where a run writes, from the Estimator and its configuration. There is one working copy per URL and process."""

from __future__ import annotations

import logging
import tempfile
import threading
from pathlib import Path
from typing import Any

from estimator_core._model_dir.contract import LocalModelDir, ModelDir
from estimator_core._paths import is_url
from estimator_core._plugins import Plugins
from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError

_log = logging.getLogger("estimator_core")


def agreed_model_dir(given: Any, configured: str | None) -> str:
    """The directory of a run; a temporary one if neither argument names it.

    Args:
        given: the argument of the Estimator.
        configured: the value in its RunConfig.

    Raises:
        ArgumentError: both name a directory, and differ.
    """
    if given is not None:
        given = RunConfig(model_dir=given).model_dir
        if configured is not None and configured != given:
            raise ArgumentError(
                "`model_dir` are set both in constructor and `RunConfig`, but with different values. In constructor: "
                f"{given!r}, in `RunConfig`: {configured!r}."
            )
        return given
    if configured is not None:
        return configured
    temporary = tempfile.mkdtemp(prefix="estimator-")
    _log.warning("Using temporary folder as model directory: %s", temporary)
    return temporary


_lock = threading.Lock()
_copies: dict[str, ModelDir] = {}


def model_dir_at(location: str, plugins: Plugins) -> ModelDir:
    """The model_dir at a path or a URL.

    Args:
        location: the path or URL from the user.
        plugins: where the storage of a URL is looked up.

    Raises:
        ArgumentError: no installed package serves the scheme, or the one that works with model_dirs at URLs is missing.
        StorageError: it cannot be opened.

    Example:
        >>> model_dir_at("runs/one", Plugins()).path.as_posix()
        'runs/one'
    """
    if not is_url(location):
        return LocalModelDir(Path(location))
    from estimator_core._storage.opening import at_url

    url = location.rstrip("/")
    opened = at_url(url, plugins)  # refuses where these plugins may not; others may have made the copy
    with _lock:
        if url not in _copies:
            _copies[url] = opened.working_copy(url, plugins)
        return _copies[url]
