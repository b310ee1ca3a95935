"""How a sealed directory becomes a checkpoint, and how a checkpoint goes: in a model_dir with a journal.

A record of the journal makes the checkpoint; its directory gets its name afterwards. This run may be frozen between
any two lines, and another one may have taken over when it goes on. So what it does to names is safe at any time:

- it renames a directory that only one record names, which is what everybody would do with it;
- it puts aside or deletes only what it has first renamed to a name of its own and *then* recognised, by the digest of
  the manifest, as something that the journal has retired; that is for ever. Anything else goes back to where it was.

Whoever looks for a checkpoint looks for its digest, under these names too (`catalog.where_is`).
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from estimator_core._checkpoint import layout
from estimator_core._checkpoint.catalog import manifest_digest, where_is
from estimator_core._checkpoint.files import remove_tree, sync_directory
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._checkpoint.pins import rename_unless_read, rename_when_unread
from estimator_core._journal import Entry, Removed, Retired, Saved
from estimator_core._journal.views import sync_event_files
from estimator_core._journal.writer import RunJournal
from estimator_core._storage import StorageGoneError
from estimator_core.errors import CheckpointError, SupersededError

_log = logging.getLogger("estimator_core.checkpoint")


class JournalShelf:
    """The checkpoints that a journal names.

    Args:
        root: their directory.
        journal: of the run that writes.
    """

    def __init__(self, root: Path, journal: RunJournal) -> None:
        self.root = root
        self._journal = journal
        self._published: set[Path] = set()
        #: Retired checkpoints whose data may be there: step and digest by place.
        self._doomed: dict[str, tuple[int, str]] = {}
        self._removed: list[Removed] = []

    def steps(self) -> list[int]:
        """Those the journal names."""
        return sorted(self._journal.lineage.saved)

    def clean_up(self) -> None:
        """Gives names that are owed, and removes what earlier runs left unfinished and what is retired: once the run is
        the writer. What a run of an earlier epoch has not recorded can never be recorded any more.
        """
        self._journal.once_taken(self._clean_up)

    def _clean_up(self) -> None:
        lineage = self._journal.lineage
        for saved in lineage.saved.values():
            place = where_is(self.root, saved)
            if place is not None and place != self.root / str(saved.step):
                self._name(place, saved)
        for path in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            epoch = layout.work_epoch(path.name)
            if epoch is not None and epoch < self._journal.epoch and self._is_dead(path):
                remove_tree(path)
                _log.info("Removed %s, left by an interrupted save.", path)
        steps = {step: manifest_digest(self.root / str(step)) for step in layout.named_steps(self.root)}
        for place, digest in lineage.retired.items():
            step = next((step for step, found in steps.items() if found == digest and self._is_of(step)), None)
            if step is not None:
                self._doomed[place] = step, digest
            else:
                self._removed.append(Removed(place=place))
        self._delete()

    def _is_of(self, step: int) -> bool:
        """Whether what has the name of a step is a checkpoint of it, and no copy of another one."""
        try:
            return read_manifest(self.root / str(step)).step == step
        except (CheckpointError, OSError):
            return False

    def _is_dead(self, path: Path) -> bool:
        """Whether nobody can need what an earlier run left."""
        digest, lineage = manifest_digest(path), self._journal.lineage
        if path.name.startswith(layout.WRITING):  # it has never had another name
            return digest not in {saved.digest for saved in lineage.saved.values()}
        return digest is None or digest in lineage.retired.values()

    def begin(self, step: int) -> Path:
        """Makes `checkpoints` if need be, never the model_dir."""
        try:
            self.root.mkdir(exist_ok=True)
        except FileNotFoundError:
            self._journal.check()
            raise
        return self.root / layout.work_name(layout.WRITING, step, self._journal.epoch)

    def publish(self, work: Path, step: int, entries: Sequence[Entry], superfluous: Sequence[int]) -> Path:
        """Records it, with all that belongs to it, and gives it its name."""
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
        """Removes it, unless a record may name it."""
        if work not in self._published:
            remove_tree(work)

    def remove(self, superfluous: Sequence[int]) -> list[int]:
        """Deletes what is retired."""
        waiting = {step for step, _ in self._doomed.values()}
        self._delete()
        return sorted(waiting - {step for step, _ in self._doomed.values()})

    def _name(self, work: Path, saved: Saved) -> Path:
        """Renames a published directory to its step. Twice, or late, it does no harm."""
        target = self.root / str(saved.step)
        for _ in range(3):
            try:
                work.rename(target)
            except FileNotFoundError:  # somebody else has done it
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
        """Makes room for a checkpoint whose name is taken: by the one it replaces, or by a copy that nobody named."""
        self._journal.check()  # a successor gives the name itself
        aside = self.root / layout.work_name(layout.REPLACED, saved.step, self._journal.epoch)
        rename_when_unread(target, aside)
        digest = manifest_digest(aside)
        if (saved.step, digest) in self._doomed.values():
            remove_tree(aside)
        elif digest is not None and self._is_successors(digest, aside, target):
            self._journal.check()
        else:
            kept = self.root / f"{layout.UNNAMED}{saved.step}-{uuid.uuid4().hex[:8]}"
            aside.rename(kept)
            _log.error("%s was no checkpoint that the journal names; it is kept as %s.", target, kept)

    def _is_successors(self, digest: str, aside: Path, target: Path) -> bool:
        """Brings a checkpoint of a run that has taken over meanwhile back to its place."""
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
        doomed = self.root / layout.work_name(layout.DELETING, step, self._journal.epoch)
        try:
            if not rename_unless_read(path, doomed):
                _log.info("Checkpoint %s is being read; it is deleted after a later save.", path)
                return False
            if manifest_digest(doomed) != digest:  # another one had taken its name in between
                _bring_back(doomed, path)
                return True
            remove_tree(doomed)
        except OSError as error:
            _log.warning("Checkpoint %s could not be deleted (%s); it is tried again after the next save.", path, error)
            return False
        _log.info("Deleted checkpoint %s: no retention rule keeps it.", path)
        return True


def _bring_back(path: Path, target: Path) -> None:
    """Undoes a rename; if the name is taken again, what is found by its digest is left where it is."""
    try:
        path.rename(target)
    except OSError as error:
        _log.warning("%s stays under this name (%s).", path, error)
