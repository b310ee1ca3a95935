"""The checkpoints directory of a writer: its contract, and publishing and deleting in one without a journal.

A `Publisher` copies a checkpoint to another place, if the directories of its writers are not the model_dir.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from estimator_core._checkpoint import catalog
from estimator_core._checkpoint.catalog import manifest_digest
from estimator_core._files import remove_tree, sync_directory
from estimator_core._journal.entries import Entry
from estimator_core._journal.reading import lineage_of
from estimator_core.errors import CheckpointError

_log = logging.getLogger("estimator_core.checkpoint")


class Shelf(Protocol):
    """The checkpoints directory of a writer.

    Attributes:
        root: the directory.
    """

    root: Path

    def steps(self) -> list[int]:
        """Returns the steps of the valid checkpoints, ascending."""
        ...

    def clean_up(self) -> None:
        """Restores the order of the directory after an interruption of the previous writer."""
        ...

    def begin(self, step: int) -> Path:
        """Returns a unique path for a new checkpoint. Its parent exists."""
        ...

    def publish(self, work: Path, step: int, entries: Sequence[Entry], superfluous: Sequence[int]) -> Path:
        """Makes a sealed directory the checkpoint of a step. Returns its new place.

        Args:
            work: the sealed directory.
            step: the step of the checkpoint.
            entries: the entries to record with it, if there is a journal.
            superfluous: the steps that no rule keeps from now on.
        """
        ...

    def discard(self, work: Path) -> None:
        """Removes a written directory, unless it is already published."""
        ...

    def remove(self, superfluous: Sequence[int]) -> list[int]:
        """Deletes checkpoints that no rule keeps, and returns the deleted steps.

        A checkpoint that is being read stays until later.
        """
        ...

    def settle(self) -> None:
        """Waits until `remove` has deleted everything from the disk."""
        ...


class PlainShelf:
    """A directory without a journal. A directory in it is a checkpoint if it has a manifest and the name of a step.

    If there is a journal, because a program writes into the model_dir of a run, the checkpoints that the journal names
    are neither replaced nor deleted.

    Args:
        root: the checkpoints directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def steps(self) -> list[int]:
        """Returns the steps with a manifest."""
        return catalog.committed_steps(self.root)

    def clean_up(self) -> None:
        """Removes partly written and partly deleted checkpoints, and restores one whose replacement was interrupted."""
        if not self.root.is_dir():
            return
        for path in sorted(self.root.iterdir()):
            if catalog.work_epoch(path.name) is None:
                continue
            if path.name.startswith(catalog.REPLACED):
                original = self.root / path.name.removeprefix(catalog.REPLACED).partition("-")[0]
                if not original.exists():
                    path.rename(original)
                    _log.warning("Brought back checkpoint %s: its replacement was interrupted.", original)
                    continue
            remove_tree(path)
            _log.info("Removed %s, left by an interrupted save.", path)

    def begin(self, step: int) -> Path:
        """Creates the checkpoints directory."""
        self.root.mkdir(parents=True, exist_ok=True)
        return self.root / catalog.work_name(catalog.WRITING, step, 0)

    def publish(self, work: Path, step: int, entries: Sequence[Entry], superfluous: Sequence[int]) -> Path:
        """Renames the directory. A checkpoint of the same step is moved aside first."""
        from estimator_core._checkpoint.read import rename_when_unread

        target = self.root / str(step)
        if self._belongs_to_a_run(step):
            raise CheckpointError(
                f"{target} was saved by the training run of this model_dir and is not replaced. Write into another "
                "directory."
            )
        aside = self.root / catalog.work_name(catalog.REPLACED, step, 0)
        if target.exists():  # a resumed run saves its first step again
            rename_when_unread(target, aside)
        work.rename(target)
        sync_directory(self.root)
        remove_tree(aside)
        return target

    def discard(self, work: Path) -> None:
        """Removes the directory. A published one has another name."""
        remove_tree(work)

    def remove(self, superfluous: Sequence[int]) -> list[int]:
        """Renames and deletes the checkpoints."""
        return [step for step in superfluous if not self._belongs_to_a_run(step) and self._removed(step)]

    def settle(self) -> None:
        """Does nothing, because `remove` has waited."""

    def _belongs_to_a_run(self, step: int) -> bool:
        lineage = lineage_of(self.root.parent)
        saved = None if lineage is None else lineage.saved.get(step)
        return saved is not None and manifest_digest(self.root / str(step)) == saved.digest

    def _removed(self, step: int) -> bool:
        from estimator_core._checkpoint.read import rename_unless_read

        path, doomed = self.root / str(step), self.root / catalog.work_name(catalog.DELETING, step, 0)
        try:
            if not rename_unless_read(path, doomed):
                _log.info("Checkpoint %s is being read; it is deleted after a later save.", path)
                return False
            remove_tree(doomed)
        except OSError as error:
            _log.warning("Checkpoint %s could not be deleted (%s); the next save tries again.", path, error)
            return False
        _log.debug("Deleted checkpoint %s: no retention rule keeps it.", path)
        return True


def _nowhere(step: int) -> str:
    return ""


def _nothing(*_: object) -> None:
    return


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """The further actions of a writer. By default there are none, because all writers share the directory.

    Args:
        place: a function that returns a new place for the checkpoint of a step; "" without another place. The chief
            calls it for each attempt.
        begin: a function that prepares the work directory of another process.
        send: a function that copies the packs of a work directory to the place.
        publish: a function that makes a checkpoint valid, from its path and its place. The chief calls it.
        follow: a function that completes the checkpoint of another process after it is valid. It publishes the work
            directory and removes steps that are not kept.
        drop: a function that removes the work directory of another process after a failure.
    """

    place: Callable[[int], str] = _nowhere
    begin: Callable[[Path], None] = _nothing
    send: Callable[[Path, str], None] = _nothing
    publish: Callable[[Path, str], None] = _nothing
    follow: Callable[[Path, str, Shelf, int, Sequence[int]], None] = _nothing
    drop: Callable[[Path], None] = _nothing


#: The publisher of writers that share a directory.
IN_PLACE = Publisher()
