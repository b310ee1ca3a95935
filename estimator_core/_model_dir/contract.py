"""What a call asks of its model_dir."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from estimator_core.config import RunConfig


class ModelDir(Protocol):
    """A directory of this machine that a run works in, and what it stands for."""

    @property
    def path(self) -> Path:
        """Where the run works."""
        ...

    def refresh(self) -> None:
        """Brings what other processes have written since.

        Raises:
            StorageError, JournalError: the store cannot be read.
        """
        ...

    def training(self, config: RunConfig, processes: int) -> AbstractContextManager[Callable[[Path], None]]:
        """Within, this process is the writer; the value publishes a checkpoint that is complete.

        Args:
            config: of the run.
            processes: how many train together.

        Raises:
            ArgumentError: so many cannot.
            SupersededError: (of the value) another run has taken over.
        """
        ...

    def written(self) -> None:
        """Publishes what a call outside of training has written: results, event files, exports."""
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

    def refresh(self) -> None:
        """There is nothing to bring."""

    def training(self, config: RunConfig, processes: int) -> AbstractContextManager[Callable[[Path], None]]:
        """What is written is published already."""
        return _nothing_to_publish()

    def written(self) -> None:
        """What is written is published already."""


@contextmanager
def _nothing_to_publish() -> Generator[Callable[[Path], None]]:
    yield lambda checkpoint: None
