"""A model_dir in an object store: the run works in a copy, and publishes each checkpoint through the journal."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

from estimator_core._checkpoint.catalog import manifest_digest
from estimator_core._checkpoint.fetched import bring
from estimator_core._checkpoint.layout import checkpoints_dir, committed_steps
from estimator_core._journal import (
    Ended,
    Journal,
    Lineage,
    Retired,
    Saved,
    observe,
    read_lineage,
    take_over,
)
from estimator_core._journal.collection import collect, new_place
from estimator_core._model_dir.beside import Beside
from estimator_core._storage import Storage, StorageDeniedError
from estimator_core._storage.scratch import scratch_directory
from estimator_core._storage.transfer import upload_directory
from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError, EstimatorError, SupersededError

_log = logging.getLogger("estimator_core.storage")
#: From so many on, `keep_checkpoint_every_n_hours` keeps nothing; it is the default.
_NEVER_HOURS = 10_000


class RemoteModelDir:
    """A working copy of a model_dir in an object store; it goes when the process ends.

    Args:
        storage: of the model_dir.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._path = Path(scratch_directory("run"), storage.url.rpartition("/")[2] or "run")
        self._path.mkdir()
        self._lock = threading.RLock()
        self._journal: Journal | None = None
        self._beside = Beside(storage, self._path)
        self._brought = False
        self._here: set[int] = set()  # steps of checkpoints that were in the copy at some time
        _log.info("%s: the run works in the copy %s.", storage.url, self._path)

    @property
    def path(self) -> Path:
        """Where the run works."""
        return self._path

    def refresh(self) -> None:
        """Brings the newest checkpoint, and the first time all that stands beside; a run that trains has them."""
        with self._lock:
            if self._journal is not None:
                return
            lineage = read_lineage(self._storage)
            if not self._brought:
                self._beside.bring(lineage)
                self._brought = True
            self._bring_newest(lineage)

    @contextlib.contextmanager
    def training(self, config: RunConfig, processes: int) -> Generator[Callable[[Path], None]]:
        """Takes the next epoch; publishes what is left at the end, unless another run has taken over.

        Raises:
            ArgumentError: there are several processes.
        """
        if processes > 1:
            raise ArgumentError(
                f"{self._storage.url}: {processes} processes cannot train into a URL together. Give them a directory "
                "that they share."
            )
        with self._lock:
            self.refresh()
            journal = take_over(self._storage, _writer(), self._step_to_go_on_from)
            self._journal = journal
        try:
            self._beside.trim(journal.lineage)
            try:
                yield lambda checkpoint: self._publish(journal, config, checkpoint)
            except BaseException as error:
                if not isinstance(error, SupersededError):
                    self._end_after_error(journal, error)
                raise
            self._end(journal, "the call is over", failed=False)
        finally:
            self._journal = None

    def written(self) -> None:
        """Publishes results, event files and exports; within training the next checkpoint does so."""
        with self._lock:
            if self._journal is not None:
                return
            try:
                lineage = read_lineage(self._storage)
                if entries := self._beside.send(lineage, self._newest_step(), epoch=0):
                    observe(self._storage, _writer(), *entries)
            except StorageDeniedError as error:
                _log.warning("What this call has written stays in the copy %s: %s", self._path, error)

    def _step_to_go_on_from(self, lineage: Lineage) -> int:
        """The newest that is recorded, brought here: another run may have saved since the copy was refreshed."""
        self._bring_newest(copy.deepcopy(lineage))
        return self._newest_step()

    # Publishing

    def _publish(self, journal: Journal, config: RunConfig, checkpoint: Path) -> None:
        """Uploads a checkpoint under a name of its own, and records it with all that stands beside it: at once."""
        step = int(checkpoint.name)
        place = new_place(journal, step)
        upload_directory(self._storage, place, checkpoint)
        with self._lock:
            journal.check()  # what stands beside is replaced: a run that was superseded must not do that
            beside = self._beside.send(journal.lineage, step, epoch=journal.epoch)
            saved = Saved(step=step, place=place, digest=str(manifest_digest(checkpoint)))
            self._here.add(step)
            journal.publish(saved, *beside)
            retired = self._no_longer_kept(journal.lineage, config)
            if retired:
                journal.publish(*retired)
            collect(self._storage, journal)

    def _no_longer_kept(self, lineage: Lineage, config: RunConfig) -> list[Retired]:
        """What the rules of the run have removed from the copy; of older runs' checkpoints, which the copy never had,
        those beyond the number to keep, where that is the only rule.
        """
        steps = set(committed_steps(checkpoints_dir(self._path)))
        gone = {step for step in lineage.saved if step in self._here and step not in steps}
        older = sorted(step for step in lineage.saved if step not in self._here)
        most = config.keep_checkpoint_max
        if most and config.keep_checkpoint_best is None and config.keep_checkpoint_every_n_hours >= _NEVER_HOURS:
            gone.update(older[: max(0, len(lineage.saved) - len(gone) - most)])
        return [Retired(place=lineage.saved[step].place) for step in sorted(gone)]

    def _end(self, journal: Journal, reason: str, *, failed: bool) -> None:
        with self._lock:
            journal.check()
            step = self._newest_step()
            beside = self._beside.send(journal.lineage, step, epoch=journal.epoch)
            journal.publish(*beside, Ended(step=step, reason=reason, failed=failed))

    def _end_after_error(self, journal: Journal, error: BaseException) -> None:
        try:
            self._end(journal, f"{type(error).__name__}: {error}", failed=True)
        except (EstimatorError, OSError) as failed:
            _log.error("%s: what the run wrote last is not published: %s", self._storage.url, failed)

    # Bringing

    def _newest_step(self) -> int:
        return max(committed_steps(checkpoints_dir(self._path)), default=0)

    def _bring_newest(self, lineage: Lineage) -> None:
        while (newest := lineage.newest) is not None:
            self._drop_others(lineage)
            target = checkpoints_dir(self._path) / str(newest.step)
            if target.exists():
                return
            self._forget_own_journal()
            if bring(self._storage, lineage, newest, target, _writer()):
                self._here.add(newest.step)
                return

    def _forget_own_journal(self) -> None:
        """The journal of the copy does not know what others have saved; without one, manifests are believed."""
        for name in ("identity", "journal", "snapshots"):
            path = self._path / name
            path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)

    def _drop_others(self, lineage: Lineage) -> None:
        """Checkpoints that the journal no longer says, or says otherwise, leave the copy."""
        root = checkpoints_dir(self._path)
        for step in committed_steps(root):
            saved = lineage.saved.get(step)
            if saved is None or manifest_digest(root / str(step)) != saved.digest:
                shutil.rmtree(root / str(step))


def _writer() -> str:
    return f"{socket.gethostname()}, process {os.getpid()}, {time.strftime('%Y-%m-%dT%H:%M:%S%z')}"
