"""The checkpoints of one model_dir, for the run that writes them."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from estimator_core import __version__
from estimator_core._checkpoint import catalog
from estimator_core._checkpoint.catalog import all_checkpoints, latest_checkpoint
from estimator_core._checkpoint.commit import Draft, commit
from estimator_core._checkpoint.failures import explained
from estimator_core._checkpoint.host_copy import NO_ROW_CHANGES, HostBuffers, RowChanges
from estimator_core._checkpoint.items import CheckpointItems, PendingCheckpoint, split_hook_states
from estimator_core._checkpoint.manifest import Manifest, read_manifest
from estimator_core._checkpoint.retention import EvalResults, Retention, no_results
from estimator_core._checkpoint.shelf import IN_PLACE, PlainShelf, Publisher, Shelf
from estimator_core._journal.entries import Entry
from estimator_core._storage.contract import StorageGoneError
from estimator_core.config import KeepBest
from estimator_core.coordinator import ALONE, Coordinator
from estimator_core.errors import CheckpointError, SupersededError

if TYPE_CHECKING:
    from estimator_core._checkpoint.pieces import Base, Pieces

_log = logging.getLogger("estimator_core.checkpoint")
_PACKAGES = ("jax", "numpy", "optax", "orbax-checkpoint")


class CheckpointStore:
    """Saves checkpoints in the background, and deletes those that no rule keeps.

    Only one store per model_dir may exist at a time, so hold its `ModelDirLock`. Readers do not need a store or the
    lock.

    Args:
        model_dir: the parent of `checkpoints/<step>`. It is created with the first save.
        keep_max, keep_every_n_hours, keep_best, results: see `Retention`.
        processes: the processes that save together. Each calls `save` at the same steps, and the chief commits.
        publisher: copies checkpoints to their final place, if that is not the model_dir, in the thread that writes
            them.
        shelf: the shelf that makes checkpoints valid. None: by their names, as in a directory without a journal.
        full_every: the number N of saves of which one is a full save. The others write only the changed rows of large
            arrays.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as model_dir, CheckpointStore(model_dir) as store:
        ...     clock = np.array([10, 0, 0, 0], np.uint32)
        ...     saved = store.save(10, CheckpointItems(clock=clock, variables={"kernel": np.ones((2, 3), np.float32)}))
        ...     os.path.basename(saved.path)
        '10'
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str],
        *,
        keep_max: int | None = 5,
        keep_every_n_hours: float | None = None,
        keep_best: KeepBest | None = None,
        results: Callable[[], EvalResults] = no_results,
        processes: Coordinator = ALONE,
        publisher: Publisher = IN_PLACE,
        shelf: Shelf | None = None,
        full_every: int = 1,
    ) -> None:
        self._model_dir = Path(model_dir).absolute()  # background commits continue if the program changes its directory
        self._root = catalog.checkpoints_dir(self._model_dir)
        self._shelf = PlainShelf(self._root) if shelf is None else shelf
        self._retention = Retention(
            keep_max=keep_max,
            keep_every_n_hours=keep_every_n_hours,
            keep_best=keep_best,
            results=results,
            model_dir=str(self._model_dir),
        )
        self._changes = RowChanges() if full_every > 1 else NO_ROW_CHANGES
        self._buffers = HostBuffers(self._changes)
        self._full_every, self._after_full = full_every, 0
        self._newest: Path | None = None  # the possible base of the next save
        self._pending: PendingCheckpoint | None = None
        self._created: dict[int, float] = {}
        self._run_created: float | None = None
        self._processes = processes
        self._publisher = publisher
        if processes.index == 0:
            with explained(self._root, 0):
                self._shelf.clean_up()

    def save(self, step: int, items: CheckpointItems, entries: Sequence[Entry] = ()) -> PendingCheckpoint:
        """Copies the state to the host and commits it in the background.

        Returns after the copy, so the arrays may then be donated or changed. First waits for the previous commit, if it
        is still running, and raises its error if it has not been raised yet.

        Args:
            step: the global step. It must be the first word of the clock.
            items: the items to save. JSON and hook states are copied too.
            entries: the entries to record with it, if there is a journal.

        Raises:
            CheckpointError: the previous commit failed, or an array cannot be saved.
            HookError: a hook's state cannot be saved.
        """
        if self._pending is not None:
            self._pending.settle()
        draft = self._draft(step, items)
        draft = replace(draft, entries=entries, base=self._base())
        self._pending = PendingCheckpoint(step, lambda: self._commit(draft))
        return self._pending

    def latest(self) -> str | None:
        """Returns the path of the newest committed checkpoint."""
        return latest_checkpoint(self._model_dir)

    def all(self) -> list[str]:
        """Returns the paths of all committed checkpoints, oldest step first."""
        return all_checkpoints(self._model_dir)

    @property
    def lost(self) -> Exception | None:
        """An error of a commit that another commit cannot fix: a takeover by another run, or a missing model_dir."""
        error = None if self._pending is None else self._pending.error
        return error if isinstance(error, (SupersededError, StorageGoneError)) else None

    def wait(self) -> None:
        """Waits for the current commit and for deletions. Raises its error, unless it has been raised before."""
        try:
            if self._pending is not None:
                self._pending.settle()
        finally:
            self._shelf.settle()

    def close(self) -> None:
        """Waits for the current commit and frees the host memory. The store can be used again."""
        try:
            self.wait()
        finally:
            self._buffers.release()

    def __enter__(self) -> CheckpointStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as failed:
            if error is None:
                raise
            _log.error("The last checkpoint was not written either: %s", failed)

    def _draft(self, step: int, items: CheckpointItems) -> Draft:
        hook_tree, hook_arrays = split_hook_states(items.hooks)
        named: Mapping[str, Mapping[str, Any]] = {
            "clock": {"clock": items.clock},
            "variables": items.variables,
            "model_state": items.model_state,
            "opt_state": items.opt_state,
            "hooks": hook_arrays,
        }
        pieces: Mapping[str, Mapping[str, Pieces]] | None = {} if self._full_every > 1 else None
        if self._processes.count > 1:
            from estimator_core._checkpoint.pieces import split_off

            named, pieces = split_off(named, chief=self._processes.index == 0)
        arrays = self._buffers.copy(named)
        _check_clock(step, np.asarray(items.clock))
        now = time.time()
        manifest = Manifest(
            step=step,
            created=now,
            run_created=now,
            packages={},
            arrays={},
            files={},
            timers=_json_copy("timers", items.timers),
            extras=_json_copy("manifest", items.manifest),
        )
        files = {catalog.INPUT_FILE: _json_copy("input", items.input), catalog.HOOKS_FILE: hook_tree}
        return Draft(manifest=manifest, arrays=arrays, files=files, pieces=pieces)

    def _base(self) -> Base | None:
        """Returns the base with which the new copy is compared; None for a full save."""
        self._after_full += 1
        if self._newest is not None and self._after_full < self._full_every:
            from estimator_core._checkpoint.pieces import Base

            return Base(checkpoint=self._newest, rows=self._changes.rows())
        self._after_full = 0
        self._buffers.begin_full()
        return None

    def _commit(self, draft: Draft) -> str:
        self._newest = None  # after a save that fails comes a full one
        if self._processes.index == 0:
            draft = self._completed(draft)
        publisher = replace(self._publisher, publish=partial(self._publish, draft))
        self._newest = commit(self._shelf, draft, self._processes, publisher)
        return str(self._newest)

    def _completed(self, draft: Draft) -> Draft:
        """Returns the chief's draft: with the time of the first save, the packages, and the superfluous steps."""
        self._read_history()
        step, created = draft.manifest.step, draft.manifest.created
        self._created[step] = created
        self._run_created = created if self._run_created is None else self._run_created
        manifest = replace(draft.manifest, run_created=self._run_created, packages=_package_versions())
        return replace(draft, manifest=manifest, superfluous=self._superfluous(just_written=step))

    def _publish(self, draft: Draft, path: Path, place: str) -> None:
        for gone in self._shelf.remove(draft.superfluous):
            if gone != draft.manifest.step:
                self._created.pop(gone, None)
        self._publisher.publish(path, place)

    def _read_history(self) -> None:
        """Reads the time of each existing checkpoint from its manifest, once."""
        for step in self._shelf.steps():
            if step in self._created:
                continue
            try:
                manifest = read_manifest(self._root / str(step))
            except (CheckpointError, OSError):
                self._created[step] = -math.inf  # damaged, so only its recency keeps it
                continue
            self._created[step] = manifest.created
            self._run_created = min(manifest.run_created, self._run_created or manifest.run_created)

    def _superfluous(self, *, just_written: int) -> list[int]:
        """Returns the steps that no rule keeps after this one is written."""
        origin = self._run_created or 0.0
        steps = {*self._shelf.steps(), just_written}
        hours = {step: max(0.0, self._created.get(step, origin) - origin) / 3600 for step in steps}
        return [step for step in self._retention.superfluous(hours) if step != just_written]


def _check_clock(step: int, clock: np.ndarray) -> None:
    if clock.dtype != np.uint32 or clock.shape != (4,):
        raise CheckpointError(f"The clock of a checkpoint must be uint32[4], not {clock.dtype}{list(clock.shape)}.")
    if int(clock[0]) != step:
        raise CheckpointError(f"Step {step} cannot be saved: the clock of the state is at step {int(clock[0])}.")


def _json_copy(what: str, value: object) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"The `{what}` of a checkpoint must be JSON (None, numbers, strings, lists, dicts): {error}."
        ) from error


@functools.cache
def _package_versions() -> Mapping[str, str]:
    versions = {"estimator-core": __version__}
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
