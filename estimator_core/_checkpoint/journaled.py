"""How a sealed directory becomes a checkpoint, and how a checkpoint is deleted, in a model_dir with a journal.

A record of the journal makes the checkpoint. Its directory gets its name afterwards. This run may be frozen between
any two lines, and another run may have taken over when it continues. So every change of names is safe at any time:

- The run renames a directory that only one record names, as every other process would.
- Before the run puts anything aside or deletes it, it renames it to a name of its own. It *then* compares the digest of
  the manifest with those that the journal has retired. Retirement is final. Anything else returns to its place.
- What is to be deleted then loses its files in a thread. The next save waits for that before it writes.

A reader of a checkpoint looks for its digest, under these names too (`catalog.where_is`).
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

from estimator_core._checkpoint import catalog
from estimator_core._checkpoint.catalog import manifest_digest, where_is
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._files import remove_tree, sync_directory
from estimator_core._journal import Entry, Removed, Retired, Saved
from estimator_core._journal.views import sync_event_files
from estimator_core._journal.writer import RunJournal
from estimator_core._storage.contract import StorageGoneError
from estimator_core.errors import CheckpointError, SupersededError

_log = logging.getLogger("estimator_core.checkpoint")


class JournalShelf:
    """The checkpoints that a journal names.

    Args:
        root: their directory.
        journal: the journal of the run that writes.
    """

    def __init__(self, root: Path, journal: RunJournal) -> None:
        self.root = root
        self._journal = journal
        self._published: set[Path] = set()
        #: Retired checkpoints whose data may be there: step and digest by place.
        self._doomed: dict[str, tuple[int, str]] = {}
        self._removed: list[Removed] = []
        self._deletions: list[threading.Thread] = []

    def steps(self) -> list[int]:
        """The steps of the checkpoints that the journal names."""
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
        """Whether the directory with the name of a step is its checkpoint, and not a copy of another one."""
        try:
            return read_manifest(self.root / str(step)).step == step
        except (CheckpointError, OSError):
            return False

    def _is_dead(self, path: Path) -> bool:
        """Whether no process can need what an earlier run left."""
        digest, lineage = manifest_digest(path), self._journal.lineage
        if path.name.startswith(catalog.WRITING):  # it has never had another name
            return digest not in {saved.digest for saved in lineage.saved.values()}
        return digest is None or digest in lineage.retired.values()

    def begin(self, step: int) -> Path:
        """Makes `checkpoints` if necessary, never the model_dir. What is being deleted frees its space first."""
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
        removed, self._removed = self._removed, []
        self._published.add(work)
        sync_event_files(self.root.parent, entries)
        sync_directory(self.root)  # the record must not outlive the directory; the name that it gets later may be lost
        try:
            self._journal.publish(saved, *entries, *(Retired(place=place) for place in retired), *removed)
        except (SupersededError, StorageGoneError):  # nothing is recorded; other errors may have come later
            self._published.discard(work)
            raise
        self._doomed.update(retired)
        return self._name(work, saved)

    def discard(self, work: Path) -> None:
        """Removes a directory, unless a record may name it."""
        if work not in self._published:
            remove_tree(work)

    def remove(self, superfluous: Sequence[int]) -> list[int]:
        """Deletes retired checkpoints. Returns the steps of those that are gone."""
        waiting = {step for step, _ in self._doomed.values()}
        self._delete()
        return sorted(waiting - {step for step, _ in self._doomed.values()})

    def settle(self) -> None:
        """Waits for the threads that delete."""
        while self._deletions:
            self._deletions.pop().join()

    def _name(self, work: Path, saved: Saved) -> Path:
        """Renames a published directory to its step. A second or late call does no harm."""
        target = self.root / str(saved.step)
        for _ in range(3):
            try:
                work.rename(target)
            except FileNotFoundError:  # another process has done it
                break
            except OSError:
                if not os.path.lexists(target):
                    raise
                self._put_aside(target, saved)
                continue
            break
        self._published.discard(work)
        return where_is(self.root, saved) or target

    def _put_aside(self, target: Path, saved: Saved) -> None:
        """Makes room for a checkpoint whose name is taken by the one it replaces, or by a copy without a record."""
        from estimator_core._checkpoint.read import rename_when_unread

        self._journal.check()  # a successor sets the name itself
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
            _log.error("%s was not a checkpoint that the journal names; it is kept as %s.", target, kept)

    def _is_successors(self, digest: str, aside: Path, target: Path) -> bool:
        """Returns a checkpoint to its place if it belongs to a run that has taken over meanwhile."""
        if self._journal.superseded_by() is None:
            return False
        if digest in {saved.digest for saved in self._journal.lineage.saved.values()}:
            _bring_back(aside, target)
            return True
        return False

    def _delete(self) -> None:
        for place, (step, digest) in list(self._doomed.items()):
            path = self.root / str(step)
            if manifest_digest(path) != digest:  # replaced by now, or gone
                gone = True
            else:
                gone = self._deleted(path, step, digest)
            if gone:
                del self._doomed[place]
                self._removed.append(Removed(place=place))

    def _deleted(self, path: Path, step: int, digest: str) -> bool:
        from estimator_core._checkpoint.read import rename_unless_read

        doomed = self.root / catalog.work_name(catalog.DELETING, step, self._journal.epoch)
        try:
            if not rename_unless_read(path, doomed):
                _log.info("Checkpoint %s is being read; it is deleted after a later save.", path)
                return False
            if manifest_digest(doomed) != digest:  # another one had taken its name in between
                _bring_back(doomed, path)
                return True
        except OSError as error:
            _log.warning("Checkpoint %s could not be deleted (%s); it is tried again after the next save.", path, error)
            return False
        deletion = threading.Thread(target=_remove, args=(doomed,), name=f"delete-{step}")
        self._deletions.append(deletion)
        deletion.start()
        _log.debug("Deleted checkpoint %s: no retention rule keeps it.", path)
        return True


def _remove(doomed: Path) -> None:
    try:
        remove_tree(doomed)
    except OSError as error:
        _log.warning("%s could not be deleted (%s); the next run of this model_dir deletes it.", doomed, error)


def _bring_back(path: Path, target: Path) -> None:
    """Undoes a rename. If the name is taken again, the directory stays where it is and is found by its digest."""
    try:
        path.rename(target)
    except OSError as error:
        _log.warning("%s stays under this name (%s).", path, error)
