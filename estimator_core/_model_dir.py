"""The directory to which a run writes, and its contract. There is one working copy per URL and process."""

from __future__ import annotations

import contextlib
import logging
import re
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from estimator_core._checkpoint.catalog import CHECKPOINTS_DIR, all_checkpoints
from estimator_core._checkpoint.shelf import IN_PLACE, Publisher
from estimator_core._files import is_url
from estimator_core._journal.entries import JournalError
from estimator_core._plugins import Plugins, using_plugins
from estimator_core._storage.contract import StorageError
from estimator_core.config import RunConfig
from estimator_core.coordinator import Coordinator
from estimator_core.errors import ArgumentError

_log = logging.getLogger("estimator_core")


class ModelDir(Protocol):
    """A directory of this machine that a run uses, and the URL of which it may be a copy."""

    @property
    def path(self) -> Path:
        """The directory that the run uses."""
        ...

    @property
    def url(self) -> str:
        """The URL of which the directory is a copy; "" without one."""
        ...

    def refresh(self, processes: Callable[[], Coordinator]) -> None:
        """Fetches the files that other processes have written since.

        Args:
            processes: a function that returns the processes that use the directory together. Packs of their checkpoints
                stay in the store.

        Raises:
            StorageError, JournalError: the store cannot be read.
        """
        ...

    def agree(self, processes: Coordinator) -> None:
        """Sends the newest checkpoint of the first process to all processes. All of them call it.

        Raises:
            StorageError, JournalError: the store cannot be read.
            ProcessLostError: a process is lost.
        """
        ...

    def training(self, config: RunConfig, processes: Coordinator) -> AbstractContextManager[Publisher]:
        """Makes the first of these processes the writer inside the block. All processes have its newest checkpoint.

        Args:
            config: the config of the run.
            processes: the processes that train together.

        Raises:
            SupersededError: another run has taken over. Raised by `publish` of the value.
        """
        ...

    def written(self, process: int) -> None:
        """Publishes the files of a call outside training: results, event files, exports.

        Args:
            process: the index of this process among those that made the call. The first one publishes.
        """
        ...

    def complete_export(self, path: str) -> None:
        """Fetches the missing files of an export of an earlier process.

        Args:
            path: the path of the export.
        """
        ...


class LocalModelDir:
    """A directory of this machine that is not a copy of a URL.

    Args:
        path: the path of the directory.
    """

    url = ""

    def __init__(self, path: Path) -> None:
        self.path = path

    def refresh(self, processes: Callable[[], Coordinator]) -> None:
        """Does nothing, because there are no files to fetch."""

    def agree(self, processes: Coordinator) -> None:
        """Does nothing, because all processes see the same directory."""

    def training(self, config: RunConfig, processes: Coordinator) -> AbstractContextManager[Publisher]:
        """Returns a context that does nothing, because written files are already published."""
        return nullcontext(IN_PLACE)

    def written(self, process: int) -> None:
        """Does nothing, because written files are already published."""

    def complete_export(self, path: str) -> None:
        """Does nothing, because exports of earlier processes are in the directory."""


def agreed_model_dir(given: Any, configured: str | None) -> str:
    """Returns the directory of a run; a temporary one if neither argument names it.

    Args:
        given: the argument of the Estimator.
        configured: the value in its RunConfig.

    Raises:
        ArgumentError: both arguments name a directory, and these differ.
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
    """Returns the model_dir at a path or a URL.

    Args:
        location: the path or URL from the user.
        plugins: the registry that provides the storage of a URL.

    Raises:
        ArgumentError: no installed package supports the scheme, or the package for model_dirs at URLs is missing. Or
            the location is a checkpoint of a run.
        StorageError: the model_dir cannot be opened.

    Example:
        >>> model_dir_at("runs/one", Plugins()).path.as_posix()
        'runs/one'
    """
    if not is_url(location):
        for path in (Path(location).absolute(), Path(location).resolve()):  # a link may name a checkpoint
            _refuse_checkpoints(path.as_posix(), plugins)
        return LocalModelDir(Path(location))
    from estimator_core._storage.opening import at_url

    url = location.rstrip("/")
    opened = at_url(url, plugins)  # refuses plugins that may not open it; others may have made the copy
    with _lock:
        if url not in _copies:
            _refuse_checkpoints(url, plugins)
            _copies[url] = opened.working_copy(url, plugins)
        return _copies[url]


def _refuse_checkpoints(location: str, plugins: Plugins) -> None:
    """Refuses the directory of the checkpoints of a run, and each of them: no other run may write inside.

    A directory around it that this user may not read, or that has other files, is not known to be a run.
    """
    inside = re.fullmatch(f"(.*[^/:])/+{CHECKPOINTS_DIR}(/[0-9]+(/.*)?)?/*", location)
    with contextlib.suppress(JournalError, StorageError), using_plugins(plugins):
        if inside and all_checkpoints(inside[1]):
            raise ArgumentError(
                f"model_dir {location} is inside the run {inside[1]}, which keeps its checkpoints there. Give "
                f"model_dir={inside[1]!r}. To select one of its checkpoints, use checkpoint_path= or warm_start_from=."
            )


def made_directory(model_dir: str) -> Path:
    """Returns the directory, and creates it if it does not exist.

    Raises:
        ArgumentError: the directory cannot be created.
    """
    path = Path(model_dir)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"model_dir {path} cannot be used as a directory: {error.strerror}.") from error
    return path
