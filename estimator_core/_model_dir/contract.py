"""What a call asks of its model_dir."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from estimator_core._checkpoint.shelf import IN_PLACE, Publisher
from estimator_core.config import RunConfig
from estimator_core.coordinator import Coordinator


class ModelDir(Protocol):
    """A directory of this machine that a run works in, and what it stands for."""

    @property
    def path(self) -> Path:
        """Where the run works."""
        ...

    @property
    def url(self) -> str:
        """The URL that it stands for; "" if it is what it stands for."""
        ...

    def refresh(self, processes: Callable[[], Coordinator]) -> None:
        """Brings what others have written since.

        Args:
            processes: returns those that use it together. Packs of their checkpoints stay in the store.

        Raises:
            StorageError, JournalError: the store cannot be read.
        """
        ...

    def agree(self, processes: Coordinator) -> None:
        """Brings the newest checkpoint of the first of several processes to all of them. Called by all.

        Raises:
            StorageError, JournalError: the store cannot be read.
            ProcessLostError: a process is gone.
        """
        ...

    def training(self, config: RunConfig, processes: Coordinator) -> AbstractContextManager[Publisher]:
        """Within, the first of these processes is the writer, and all have its newest checkpoint.

        Args:
            config: of the run.
            processes: those that train together.

        Raises:
            SupersededError: (of the value's `publish`) another run has taken over.
        """
        ...

    def written(self, process: int) -> None:
        """Publishes what a call outside of training has written: results, event files, exports.

        Args:
            process: of those that made the call together, which this is; the first one publishes.
        """
        ...

    def complete_export(self, path: str) -> None:
        """Brings what is not here of an export that an earlier process has made.

        Args:
            path: of the export.
        """
        ...


class LocalModelDir:
    """A directory of this machine, which is what it stands for.

    Args:
        path: of the directory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        """Where the run works."""
        return self._path

    @property
    def url(self) -> str:
        """It is what it stands for."""
        return ""

    def refresh(self, processes: Callable[[], Coordinator]) -> None:
        """There is nothing to bring."""

    def agree(self, processes: Coordinator) -> None:
        """All processes see the same directory."""

    def training(self, config: RunConfig, processes: Coordinator) -> AbstractContextManager[Publisher]:
        """What is written is published already."""
        return nullcontext(IN_PLACE)

    def written(self, process: int) -> None:
        """What is written is published already."""

    def complete_export(self, path: str) -> None:
        """What an earlier process has made is here."""
