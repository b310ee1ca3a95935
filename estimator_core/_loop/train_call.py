"""One `Estimator.train` call, from the lock of its model_dir to its last file."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path

from estimator_core._checkpoint import CheckpointStore, catalog
from estimator_core._checkpoint.failures import placed
from estimator_core._checkpoint.journal_shelf import JournalShelf
from estimator_core._checkpoint.lock import LOCK_FILE, ModelDirLock
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._checkpoint.shelf import PlainShelf
from estimator_core._cluster.processes import gather
from estimator_core._journal.derived import imported, trim_event_files, write_results_files
from estimator_core._journal.entries import Entry, Saved
from estimator_core._journal.lineage import Lineage
from estimator_core._journal.reading import lineage_of
from estimator_core._journal.writer import Journal, PendingJournal, take_over
from estimator_core._loop.result_log import ObserverLedger, WriterLedger, this_process
from estimator_core._loop.resuming import Start, find_start, owed_ending
from estimator_core._loop.train_arguments import TrainArguments
from estimator_core._loop.train_run import TrainRun
from estimator_core._storage.local import LocalStorage
from estimator_core._summaries import read_eval_metrics
from estimator_core.coordinator import Coordinator
from estimator_core.errors import ArgumentError, SupersededError

_log = logging.getLogger("estimator_core")


@contextlib.contextmanager
def own_together(model_dir: Path, processes: Coordinator, url: str) -> Generator[None]:
    """Locks the model_dir in the chief.

    The other processes check that they see the lock, so that all use the same directory.

    Args:
        model_dir: the model_dir of this process.
        processes: the processes that train together.
        url: the URL of which the model_dir is a copy. Each process has its own copy, and all must use the same URL. "":
            no URL.

    Raises:
        ModelDirLockedError: another run is training there.
        ArgumentError: a process does not see the chief's directory.
    """
    if processes.count == 1:
        with ModelDirLock(model_dir):
            yield
        return
    with ModelDirLock(model_dir) if processes.index == 0 or url else contextlib.nullcontext():
        processes.barrier("locked", math.inf)
        token = url or ((model_dir / LOCK_FILE).read_text() if (model_dir / LOCK_FILE).exists() else None)
        seen = gather(processes, "model_dir", [url or str(model_dir.absolute()), token])
        strangers = [p for p, (_, lock) in enumerate(seen) if lock != seen[0][1]]
        if strangers:
            raise ArgumentError(
                f"Processes {strangers} do not see the model_dir of process 0 ({seen[0][0]}); theirs is "
                f"{[seen[p][0] for p in strangers]}. Give all the same model_dir: a URL, or a directory they share."
            )
        yield
        processes.barrier("done", math.inf)


def take_model_dir(
    model_dir: Path, processes: Coordinator, find: Callable[[], Start]
) -> tuple[Start, PendingJournal | None]:
    """Chooses the start of the run, which takes the next epoch with its first write.

    After that, records after the start no longer count. Event files and evaluation results are adjusted.

    Args:
        model_dir: the existing directory of the run.
        processes: the processes. The first one takes over.
        find: a function that chooses the start. It is called in all processes.

    Returns:
        The start, and the journal in the first process.
    """
    if processes.index != 0:
        return find(), None
    seen = _seen(model_dir)
    start = find()

    def take() -> Journal:
        journal = _taken(model_dir, seen, start.step)
        trim_event_files(model_dir, journal.lineage, before=journal.epoch, ended=seen.ended is not None)
        write_results_files(model_dir, journal.lineage)
        return journal

    return start, PendingJournal(take, seen)


def shelf_of(model_dir: Path, journal: PendingJournal | None) -> JournalShelf | PlainShelf:
    """Returns the shelf for the checkpoints of a run. Processes other than the first have no journal and only write."""
    root = catalog.checkpoints_dir(model_dir.absolute())
    return PlainShelf(root) if journal is None else JournalShelf(root, journal)


def _seen(model_dir: Path) -> Lineage:
    """Returns the lineage in the journal. A directory without a journal is first cleaned up; its lineage is empty."""
    lineage = lineage_of(model_dir)
    if lineage is None:
        PlainShelf(catalog.checkpoints_dir(model_dir)).clean_up()
    return lineage or Lineage()


def _taken(model_dir: Path, seen: Lineage, step: int) -> Journal:
    epoch, newest = seen.epoch, seen.newest

    def unchanged(lineage: Lineage) -> int:
        if lineage.epoch != epoch or lineage.newest != newest:
            raise SupersededError(
                f"Another run has begun in {model_dir} while this one was starting: {lineage.writer}. Start again when "
                "it has ended."
            )
        return step

    storage, first = LocalStorage(model_dir), partial(_first, model_dir)
    return take_over(storage, this_process(), unchanged, first, known=seen)


def _first(model_dir: Path, lineage: Lineage) -> Sequence[Entry]:
    """Returns the contents of a directory from a release without a journal, as the beginning of the journal."""
    if lineage.number >= 0:
        return ()
    found = ((one, catalog.manifest_digest(one.path)) for one in catalog.listed(model_dir) if not one.problem)
    saved = [
        Saved(step=one.step, place=f"{catalog.CHECKPOINTS_DIR}/{one.step}", digest=digest)
        for one, digest in found
        if digest is not None
    ]
    return [*saved, *imported(model_dir)]


def execute(call: TrainArguments) -> str:
    """Trains, and returns the reason why training ended.

    Raises:
        PreemptedError: the platform requested a stop. The state is saved.
    """
    context, devices = call.context, call.context.devices
    processes, config = devices.processes, devices.config
    with (
        placed(context.directory),
        context.together("train", call.hooks, steps=call.steps, max_steps=call.max_steps),
        own_together(context.directory, processes, call.place.url),
        Preemption(grace_secs=config.grace_secs) as preemption,
        contextlib.ExitStack() as cleanup,
    ):
        publisher = cleanup.enter_context(call.place.training(config, processes))
        context.plugins.open_call(config)
        # The first process that requests devices waits for all others. Below, one process may have to wait for
        # another.
        _ = devices.placement
        model_dir = str(context.directory)
        owed = partial(owed_ending, processes, model_dir=model_dir, steps=call.steps, max_steps=call.max_steps)
        start, journal = take_model_dir(
            context.directory, processes, lambda: find_start(devices, call.state, model_dir, context.plugins, owed)
        )
        best = config.keep_checkpoint_best
        store = cleanup.enter_context(
            CheckpointStore(
                context.directory,
                keep_max=config.keep_checkpoint_max,
                keep_every_n_hours=config.keep_checkpoint_every_n_hours,
                keep_best=best,
                results=lambda: read_eval_metrics(context.estimator.eval_dir(best and best.evaluation)),
                processes=processes,
                publisher=publisher,
                shelf=shelf_of(context.directory, journal),
                full_every=config.full_checkpoint_every,
            )
        )
        if start.items is not None:
            context.plugins.require_made_with(start.items.manifest.get("plugins", ()))
        ledger = (
            ObserverLedger(context.directory)
            if journal is None
            else WriterLedger(journal, context.directory, start.step, call.state)
        )
        return TrainRun(call, start, store, ledger, preemption, cleanup).to_end()
