"""Turns a sealed directory into a checkpoint, and deletes checkpoints, in a model_dir with a journal.

A record of the journal creates the checkpoint. Its directory gets its name afterwards. This run may be frozen between
any two lines, and another run may have taken over when it continues. So every change of names is safe at any time:

- The run renames a directory that only one record names, as every other process would.
- Before the run moves a directory aside or deletes it, it renames the directory to a unique name. It *then* compares
  the digest of the manifest with those that the journal has retired. Retirement is final. Any other directory returns
  to its place.
- A thread then deletes the files of a retired checkpoint. The next save waits for that before it writes.

A reader of a checkpoint searches for its digest, also under these names (`catalog.where_is`).
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from estimator_core._checkpoint import catalog
from estimator_core._checkpoint.catalog import manifest_digest, where_is
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._files import remove_tree, sync_directory
from estimator_core._journal.derived import sync_event_files
from estimator_core._journal.entries import Entry, Removed, Retired, Saved
from estimator_core._journal.writer import RunJournal
from estimator_core._storage.contract import StorageGoneError
from estimator_core.errors import CheckpointError, SupersededError

_log = logging.getLogger("estimator_core.checkpoint")


class JournalShelf:
    """The checkpoints that a journal names.

    Args:
        root: the checkpoints directory.
        journal: the journal of the run that writes.
    """

    def __init__(self, root: Path, journal: RunJournal) -> None:
        self.root = root
        self._journal = journal
        self._published: set[Path] = set()
        #: The retired checkpoints whose data may still exist: step and digest by place.
        self._doomed: dict[str, tuple[int, str]] = {}
        self._removed: list[Removed] = []
        self._deletions: list[threading.Thread] = []

    def steps(self) -> list[int]:
        """Returns the steps of the checkpoints that the journal names."""
        return sorted(self._journal.lineage.saved)

    def clean_up(self) -> None:
        """Completes missing names, and removes unfinished work of earlier runs and retired checkpoints.

        This happens once the run is the writer. An unfinished record of an earlier epoch can no longer be completed.
        """
        self._journal.once_taken(self._clean_up)

    def _clean_up(self) -> None:
        lineage = self._journal.lineage
        for saved in lineage.saved.values():
            place = where_is(self.root, saved)
            if place is not None and place != self.root / str(saved.step):
                self._name(place, saved)
        for path in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            epoch = catalog.work_epoch(path.name)
            if epoch is not None and epoch < self._journal.epoch and self._is_dead(path):
                remove_tree(path)
                _log.info("Removed %s, left by an interrupted save.", path)
        steps = {step: manifest_digest(self.root / str(step)) for step in catalog.named_steps(self.root)}
        for place, digest in lineage.retired.items():
            step = next((step for step, found in steps.items() if found == digest and self._is_of(step)), None)
            if step is not None:
                self._doomed[place] = step, digest
            else:
                self._removed.append(Removed(place=place))
        self._delete()

    def _is_of(self, step: int) -> bool:
        """Returns whether the directory with the name of a step is its checkpoint, and not a copy of another one."""
        try:
            return read_manifest(self.root / str(step)).step == step
        except (CheckpointError, OSError):
            return False

    def _is_dead(self, path: Path) -> bool:
        """Returns whether no process can need the remains of an earlier run."""
        digest, lineage = manifest_digest(path), self._journal.lineage
        if path.name.startswith(catalog.WRITING):  # its only name so far
            return digest not in {saved.digest for saved in lineage.saved.values()}
        return digest is None or digest in lineage.retired.values()

    def begin(self, step: int) -> Path:
        """Creates `checkpoints` if necessary, but never the model_dir.

        First waits until deletions have freed their space.
        """
        self.settle()
        try:
            self.root.mkdir(exist_ok=True)
        except FileNotFoundError:
            self._journal.check()
            raise
        return self.root / catalog.work_name(catalog.WRITING, step, self._journal.epoch)

    def publish(self, work: Path, step: int, entries: Sequence[Entry], superfluous: Sequence[int]) -> Path:
        """Records a checkpoint with everything that belongs to it, and then renames its directory to its name."""
        digest = manifest_digest(work)
        if digest is None:
            self._journal.check()
            raise CheckpointError(
                f"{work} was removed before it was complete. Leave model_dir alone while a run writes."
            )
        saved = Saved(step=step, place=work.relative_to(self.root.parent).as_posix(), digest=digest)
        live = self._journal.lineage.saved
        retired = {live[one].place: (one, live[one].digest) for one in superfluous if one in live}
        if (before := live.get(step)) is not None:
            retired[before.place] = step, before.digest
        sync_event_files(self.root.parent, entries)
        sync_directory(self.root)  # the record must not outlive the directory, but its later name may be lost
        removed, self._removed = self._removed, []
        self._published.add(work)
        try:
            self._journal.publish(saved, *entries, *(Retired(place=place) for place in retired), *removed)
        except (SupersededError, StorageGoneError):  # the record was not written; after other errors it may exist
            self._published.discard(work)
            raise
        self._doomed.update(retired)
        return self._name(work, saved)

    def discard(self, work: Path) -> None:
        """Removes a directory, unless a record may name it."""
        if work not in self._published:
            remove_tree(work)

    def remove(self, superfluous: Sequence[int]) -> list[int]:
        """Deletes retired checkpoints. Returns the steps of those that no longer exist."""
        waiting = {step for step, _ in self._doomed.values()}
        self._delete()
        return sorted(waiting - {step for step, _ in self._doomed.values()})

    def settle(self) -> None:
        """Waits for the threads that delete."""
        while self._deletions:
            self._deletions.pop().join()

    def _name(self, work: Path, saved: Saved) -> Path:
        """Renames a published directory to its step. A second or late call is harmless."""
        target = self.root / str(saved.step)
        for _ in range(3):
            try:
                work.rename(target)
            except FileNotFoundError:  # another process has renamed it
                pass
            except OSError:
                if not os.path.lexists(target):
                    raise
                self._put_aside(target, saved)
                continue
            self._published.discard(work)
            break
        return where_is(self.root, saved) or target

    def _put_aside(self, target: Path, saved: Saved) -> None:
        """Frees the name of a checkpoint, if it belongs to the replaced directory or to a copy without a record."""
        from estimator_core._checkpoint.read import rename_when_unread

        self._journal.check()  # a successor renames it itself
        aside = self.root / catalog.work_name(catalog.REPLACED, saved.step, self._journal.epoch)
        rename_when_unread(target, aside)
        digest = manifest_digest(aside)
        if (saved.step, digest) in self._doomed.values():
            remove_tree(aside)
        elif digest is not None and self._is_successors(digest, aside, target):
            self._journal.check()
        else:
            kept = self.root / f"{catalog.UNNAMED}{saved.step}-{uuid.uuid4().hex[:8]}"
            aside.rename(kept)
            _log.error("%s was not a checkpoint that the journal names, so it was renamed to %s.", target, kept)

    def _is_successors(self, digest: str, aside: Path, target: Path) -> bool:
        """Moves a checkpoint back to its place if it belongs to a run that has taken over meanwhile.

        Returns whether it does.
        """
        if self._journal.superseded_by() is None:
            return False
        if digest in {saved.digest for saved in self._journal.lineage.saved.values()}:
            _bring_back(aside, target)
            return True
        return False

    def _delete(self) -> None:
        for place, (step, digest) in list(self._doomed.items()):
            path, removed = self.root / str(step), partial(self._removed.append, Removed(place=place))
            if manifest_digest(path) != digest:  # replaced or deleted meanwhile
                removed()
            elif not self._deleted(path, step, digest, removed):
                continue
            del self._doomed[place]

    def _deleted(self, path: Path, step: int, digest: str, removed: Callable[[], None]) -> bool:
        from estimator_core._checkpoint.read import rename_unless_read

        doomed = self.root / catalog.work_name(catalog.DELETING, step, self._journal.epoch)
        try:
            if not rename_unless_read(path, doomed):
                _log.info("Checkpoint %s is being read; it is deleted after a later save.", path)
                return False
            if manifest_digest(doomed) != digest:  # another directory has taken its name meanwhile
                _bring_back(doomed, path)
                removed()
                return True
        except OSError as error:
            _log.warning("Checkpoint %s could not be deleted (%s); the next save tries again.", path, error)
            return False
        deletion = threading.Thread(target=_remove, args=(doomed, removed), name=f"delete-{step}")
        self._deletions.append(deletion)
        deletion.start()
        _log.debug("Deleted checkpoint %s: no retention rule keeps it.", path)
        return True


def _remove(doomed: Path, removed: Callable[[], None]) -> None:
    """Deletes a directory. After a failure it is not recorded as removed, so the next run recognises it as retired."""
    try:
        remove_tree(doomed)
        removed()
    except OSError as error:
        _log.warning("%s could not be deleted (%s); the next run of this model_dir deletes it.", doomed, error)


def _bring_back(path: Path, target: Path) -> None:
    """Undoes a rename. If the name is taken again, the directory stays where it is and is found by its digest."""
    try:
        path.rename(target)
    except OSError as error:
        _log.warning("%s could not be moved back and keeps this name (%s).", path, error)
