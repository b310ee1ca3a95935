"""A model_dir in an object store: the run works in a copy, and publishes each checkpoint through the journal."""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import math
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from estimator_core.checkpoint import (
    PACK_SUFFIX,
    Publisher,
    Shelf,
    committed_steps,
    leave_away,
    manifest_digest,
    read_manifest,
)
from estimator_core.config import RunConfig
from estimator_core.coordinator import Coordinator
from estimator_core.errors import EstimatorError, SupersededError
from estimator_core.journal import (
    Ended,
    Journal,
    Lease,
    Lineage,
    Retired,
    Saved,
    collect,
    lease,
    lineage_of,
    new_place,
    observe,
    read_lineage,
    take_over,
)
from estimator_core.plugins import Plugins
from estimator_core.storage import Storage, StorageDeniedError, open_storage
from estimator_storage.at_urls.checkpoints import CHECKPOINTS, bring, bring_newest, read_here
from estimator_storage.at_urls.directories import upload_directory, upload_file
from estimator_storage.at_urls.kept_exports import MANIFEST
from estimator_storage.at_urls.packs_in_store import PacksInStore
from estimator_storage.at_urls.scratch import scratch_directory
from estimator_storage.at_urls.side_file_sync import Beside

_log = logging.getLogger("estimator_core.storage")
#: From this number of hours on, `keep_checkpoint_every_n_hours` keeps nothing. It is the default.
_NEVER_HOURS = 10_000
#: The record of the run. It states whether training has ended, and an evaluator waits for that.
_RUN_RECORD = "run.json"


class WorkingCopy:
    """A working copy of a model_dir in an object store. It is removed when the process ends.

    Args:
        storage: the storage of the model_dir.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._path = Path(scratch_directory("run"), storage.url.rpartition("/")[2] or "run")
        self._path.mkdir()
        self._checkpoints = self._path / CHECKPOINTS
        self._lock = threading.RLock()
        self._journal: Journal | None = None
        self._beside = Beside(storage, self._path)
        self._identity = ""  # the model_dir that was copied
        self._training = self._brought = False
        self._newest: Saved | None = None  # the newest checkpoint of the copy that is in the store
        self._packs: PacksInStore | None = None  # the packs of the newest downloaded checkpoint
        self._damaged: set[str] = set()  # the places of damaged checkpoints
        self._here: set[int] = set()  # the steps of checkpoints that were in the copy at any time
        _log.info("%s: the run works in the copy %s.", storage.url, self._path)

    @property
    def path(self) -> Path:
        """The directory in which the run works."""
        return self._path

    @property
    def url(self) -> str:
        """The URL of the model_dir."""
        return self._storage.url

    def refresh(self, processes: Callable[[], Coordinator]) -> None:
        """Downloads the newest checkpoint, and at the first call also the other files. Does nothing during training."""
        with self._lock:
            if self._training:
                return
            lineage = read_here(self._storage)
            if self._identity not in ("", lineage.identity):
                self._begin_anew()
            self._identity = lineage.identity
            if not self._brought:
                self._beside.bring(lineage)
                self._brought = True
            else:
                self._beside.renew(_RUN_RECORD)
            self._bring_newest(lineage, several=processes().count > 1)

    def agree(self, processes: Coordinator) -> None:
        """Downloads the chief's newest checkpoint to all processes. Repeats if another run retires it meanwhile."""
        if processes.count == 1:
            return
        while True:
            saved = self._newest if processes.index == 0 else None
            told = _chief_says(processes, "checkpoint", saved and [saved.step, saved.place, saved.digest])
            here = processes.index == 0 or self._has(told and Saved(step=told[0], place=told[1], digest=told[2]))
            if all(map(json.loads, processes.agree("checkpoint-here", json.dumps(here), math.inf))):
                return
            if self._journal is not None:
                self._journal.check()
            self.refresh(lambda: processes)

    def training(self, config: RunConfig, processes: Coordinator) -> AbstractContextManager[Publisher]:
        """Returns the context of training.

        The chief takes the next epoch, and at the end publishes the remaining files, unless another run has taken over.
        """
        return self._leading(config, processes) if processes.index == 0 else self._following(processes)

    @contextlib.contextmanager
    def _leading(self, config: RunConfig, processes: Coordinator) -> Generator[Publisher]:
        with self._lock:
            self.refresh(lambda: processes)
            journal = take_over(self._storage, _writer(), partial(self._step_to_go_on_from, processes.count > 1))
            self._journal, self._training = journal, True
            self._identity = journal.lineage.identity
        try:
            self._beside.trim(journal.lineage)
            self.agree(processes)
            try:
                yield Publisher(
                    place=partial(new_place, journal), send=self._send, publish=partial(self._publish, journal, config)
                )
            except BaseException as error:
                if not isinstance(error, SupersededError):
                    self._end_after_error(journal, error)
                raise
            self._end(journal, self._reason(), failed=False)
        finally:
            self._journal, self._training = None, False

    @contextlib.contextmanager
    def _following(self, processes: Coordinator) -> Generator[Publisher]:
        self.refresh(lambda: processes)
        self._training = True
        try:
            self.agree(processes)
            yield Publisher(begin=_make, send=self._send, follow=self._follow, drop=_remove)
        finally:
            self._training = False

    def written(self, process: int) -> None:
        """Publishes results, event files and exports. During training, the next checkpoint publishes them."""
        with self._lock:
            if self._training or process != 0:
                return
            try:
                lineage = read_lineage(self._storage)
                if entries := self._beside.send(lineage, self._newest_step(), epoch=0):
                    observe(self._storage, _writer(), *entries)
                self._beside.send_recorded()
            except StorageDeniedError as error:
                _log.warning("The output of this call stays in the copy %s: %s", self._path, error)

    def complete_export(self, path: str) -> None:
        """Downloads the missing files of an export that an earlier process has uploaded."""
        with self._lock:
            self._beside.exports.complete(Path(path))

    def _step_to_go_on_from(self, several: bool, lineage: Lineage) -> int:
        """Returns the newest recorded step, and downloads it. Another run may have saved since the last refresh."""
        self._bring_newest(copy.deepcopy(lineage), several=several)
        return self._newest_step()

    # Publishing

    def _send(self, work: Path, place: str) -> None:
        """Uploads the packs of this process."""
        for path in sorted(work.glob(f"*{PACK_SUFFIX}")):
            upload_file(self._storage, f"{place}/{path.name}", path, size=path.stat().st_size)

    def _publish(self, journal: Journal, config: RunConfig, checkpoint: Path, place: str) -> None:
        """Uploads a checkpoint without its packs, and records it together with all other files in one entry.

        Args:
            journal: the journal of the store.
            config: the RunConfig of the run.
            checkpoint: the path of the checkpoint in the copy.
            place: the place of the checkpoint. All processes have uploaded their packs there.
        """
        self._release()
        step = int(checkpoint.name)
        upload_directory(self._storage, place, checkpoint, without=PACK_SUFFIX)
        with self._lock:
            journal.check()  # the next lines replace files in the store, which a superseded run must not do
            beside = self._beside.send(journal.lineage, step, epoch=journal.epoch)
            saved = Saved(step=step, place=place, digest=str(manifest_digest(checkpoint)))
            self._here.add(step)
            journal.publish(saved, *beside)
            self._newest = saved
            self._keep_away(saved, checkpoint, None)
            retired = self._no_longer_kept(journal.lineage, config)
            if retired:
                journal.publish(*retired)
            collect(self._storage, journal)

    def _follow(self, work: Path, place: str, shelf: Shelf, step: int, kept: Sequence[int]) -> None:
        """Downloads the files that the chief has added to a checkpoint, and removes the checkpoints it has retired."""
        self._release()
        (work / MANIFEST).write_bytes(self._storage.get(f"{place}/{MANIFEST}"))
        for name in read_manifest(work).files:  # not by a list, because some stores show new objects late
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_bytes(self._storage.get(f"{place}/{name}"))
        path = shelf.publish(work, step, (), ())
        leave_away(path, PacksInStore(self._storage, place, None))
        shelf.remove([one for one in shelf.steps() if one not in kept])

    def _no_longer_kept(self, lineage: Lineage, config: RunConfig) -> list[Retired]:
        """Returns the entries that retire checkpoints: those that the rules of the run have removed from the copy. For
        checkpoints of older runs, which the copy never had, only the limit on the number applies, if it is the only
        rule.
        """
        steps = set(committed_steps(self._checkpoints))
        gone = {step for step in lineage.saved if step in self._here and step not in steps}
        older = sorted(step for step in lineage.saved if step not in self._here)
        most = config.keep_checkpoint_max
        if most and config.keep_checkpoint_best is None and config.keep_checkpoint_every_n_hours >= _NEVER_HOURS:
            gone.update(older[: max(0, len(lineage.saved) - len(gone) - most)])
        return [Retired(place=lineage.saved[step].place) for step in sorted(gone)]

    def _reason(self) -> str:
        """Returns the reason for the end of the call, according to the journal of the copy."""
        lineage = lineage_of(self._path)
        ended = None if lineage is None else lineage.ended
        return "the call is over" if ended is None or ended.failed else ended.reason

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
            _log.error("%s: the newest output of the run is not published: %s", self._storage.url, failed)

    # Bringing

    def _begin_anew(self) -> None:
        """Empties the copy, because the model_dir was removed or replaced. Old files would otherwise return to the
        store.
        """
        _log.warning("%s was removed or replaced since this process used it, so its copy is emptied.", self.url)
        self._release()
        for path in self._path.iterdir():
            path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
        self._beside = Beside(self._storage, self._path)
        self._brought, self._newest = False, None
        self._here.clear()

    def _newest_step(self) -> int:
        return max(committed_steps(self._checkpoints), default=0)

    def _bring_newest(self, lineage: Lineage, *, several: bool) -> None:
        def brings(saved: Saved) -> bool:
            self._drop_others(lineage)
            return self._brings(lineage, saved, several=several)

        bring_newest(self._storage, lineage, self._damaged, brings)

    def _has(self, saved: Saved | None) -> bool:
        """Makes a checkpoint the newest of the copy. Returns False if it was retired."""
        root = self._checkpoints
        for step in committed_steps(root):
            if saved is None or step > saved.step:
                _remove(root / str(step))
        if saved is None:
            return True
        if manifest_digest(root / str(saved.step)) not in (None, saved.digest):
            _remove(root / str(saved.step))
        return self._brings(read_lineage(self._storage), saved, several=True)

    def _brings(self, lineage: Lineage, saved: Saved, *, several: bool) -> bool:
        """Downloads a missing checkpoint, without its packs if there are several processes. False if it was retired."""
        target = self._checkpoints / str(saved.step)
        if not target.exists():
            self._forget_own_journal()
            if not bring(self._storage, lineage, saved, target, _writer(), without=PACK_SUFFIX if several else ""):
                return False
            if several and not self._lease_packs(lineage, saved, target):
                _remove(target)
                return False
            self._here.add(saved.step)
        self._newest = saved
        return True

    def _lease_packs(self, lineage: Lineage, saved: Saved, target: Path) -> bool:
        """Protects the packs of a checkpoint from removal until the next one is here. False if it was retired."""
        try:
            held = lease(self._storage, lineage, saved.place, _writer())
            if held is None:
                return False
        except StorageDeniedError:  # read permission only
            held = None
        self._release()
        self._keep_away(saved, target, held)
        return True

    def _keep_away(self, saved: Saved, target: Path, held: Lease | None) -> None:
        """Makes readers take packs that the copy lacks from the store."""
        packs = read_manifest(target).packs
        if any(not (target / pack.name).exists() for pack in packs):
            self._packs = PacksInStore(self._storage, saved.place, held)
            leave_away(target, self._packs)
        elif held is not None:
            held.release()

    def _release(self) -> None:
        packs, self._packs = self._packs, None
        if packs is not None:
            packs.release()

    def _forget_own_journal(self) -> None:
        """Removes the copy's journal, which does not know the saves of others. Without it, manifests are trusted."""
        for name in ("identity", "journal", "snapshots"):
            path = self._path / name
            path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)

    def _drop_others(self, lineage: Lineage) -> None:
        """Removes checkpoints from the copy that the journal no longer has, or has with other content."""
        root = self._checkpoints
        for step in committed_steps(root):
            saved = lineage.saved.get(step)
            if saved is None or manifest_digest(root / str(step)) != saved.digest:
                shutil.rmtree(root / str(step))


def working_copy(url: str, plugins: Plugins) -> WorkingCopy:
    """Returns a working copy of the model_dir at a URL."""
    return WorkingCopy(open_storage(url, plugins))


def _chief_says(processes: Coordinator, topic: str, value: object) -> Any:
    """Returns the JSON value of process 0."""
    return json.loads(processes.tell(topic, json.dumps(value) if processes.index == 0 else None, math.inf))


def _remove(directory: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(directory)


def _make(work: Path) -> None:
    work.mkdir(parents=True)


def _writer() -> str:
    return f"{socket.gethostname()}, process {os.getpid()}, {time.strftime('%Y-%m-%dT%H:%M:%S%z')}"
