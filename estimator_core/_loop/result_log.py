"""Records the evaluation results and event files of a call, with the next checkpoint or at once.

The ledger writes to the journal. The log of an outermost call keeps the event files of its evaluations open.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from estimator_core._checkpoint import latest_checkpoint
from estimator_core._checkpoint.catalog import checkpoint_path, checkpoint_step
from estimator_core._checkpoint.lock import Holder
from estimator_core._journal.derived import begin_sync, results_dir, results_line, sync_event_files, trim_leftovers
from estimator_core._journal.entries import Ended, Entry, Evaluated, Segment
from estimator_core._journal.reading import lineage_of
from estimator_core._journal.writer import RunJournal, observe
from estimator_core._loop.device_state import DeviceState
from estimator_core._storage.local import LocalStorage
from estimator_core._summaries import EventFile, append_line, event_files_below, open_summary_writer, read_eval_metrics


class WriterLedger:
    """The ledger of a training call. It records results with their checkpoint, or at once for a saved step.

    Args:
        journal: the journal of the run.
        model_dir: the directory of the run.
        step: the step at which the call starts.
        live: the state of the call. Its version identifies the values to which a result belongs.
    """

    def __init__(self, journal: RunJournal, model_dir: Path, step: int, live: DeviceState) -> None:
        self._journal, self._model_dir, self._saved, self._live = journal, model_dir, step, live
        self._waiting: list[tuple[int, Evaluated]] = []
        self._uncommitted: list[Evaluated] = []
        self._under_way: set[int] = set()  # the steps of commits in progress
        self._late: list[Evaluated] = []  # results of a saved step during a commit

    @property
    def epoch(self) -> int:
        """The epoch of the run."""
        return self._journal.epoch

    def check(self) -> None:
        """Raises SupersededError or StorageGoneError."""
        self._journal.check()

    def checkpoint_of(self, step: int) -> str | None:
        """Returns the checkpoint with the live values of a step, also during its commit; None if none has them."""
        held = self._live.checkpoint_step, self._live.checkpoint_version
        return checkpoint_path(self._model_dir, step) if held == (step, self._live.version) else None

    def record(self, result: Evaluated) -> None:
        """Records a result of a saved step, after the entries of a commit in progress.

        Keeps other results until their step is saved.
        """
        self._uncommitted = [one for one in self._uncommitted if (one.name, one.step) != (result.name, result.step)]
        if result.step > self._saved:
            self._waiting.append((self._live.version, result))
        elif self._under_way:
            self._late.append(result)
        else:
            self._publish_late(result)

    def for_save(self, step: int) -> Sequence[Entry]:
        """Returns the entries to record with the checkpoint of a step: results, and event files up to now.

        Raises:
            SupersededError, StorageGoneError: the run must not continue.
        """
        self._journal.check()
        self._under_way.add(step)
        late, self._late = self._late, []
        waiting, self._waiting, self._saved = self._waiting, [], step
        held = (self._live.version, step)
        told = [self._held(one) if (version, one.step) == held else one for version, one in waiting]
        return [*late, *told, *segments(self._model_dir, self._model_dir, step)]

    def committed(self, step: int) -> None:
        """Writes the result lines of a checkpoint that now exists, and records late ones."""
        self._under_way.discard(step)
        there = [result for result in self._uncommitted if result.step <= step]
        self._uncommitted = [result for result in self._uncommitted if result.step > step]
        for result in there:
            append_line(results_dir(self._model_dir, result.name), results_line(self._model_dir, result))
        if not self._under_way:
            late, self._late = self._late, []
            self._publish_late(*late)

    def end(self, step: int, reason: str, *, failed: bool) -> None:
        """Records that the call has ended regularly, and all waiting results."""
        ended = Ended(step=step, reason=reason, failed=failed)
        waiting = [*self._late, *(result for _, result in self._waiting)]
        self._publish(*waiting, *segments(self._model_dir, self._model_dir, step), ended)

    def broken_off(self, step: int) -> None:
        """Records the contents of event files after the last save of an interrupted call."""
        if told := segments(self._model_dir, self._model_dir, step):
            self._publish(*told)

    def _held(self, result: Evaluated) -> Evaluated:
        """Assigns a result of the exact values in a checkpoint to the checkpoint, whatever code requested the
        evaluation.
        """
        if result.between:
            where = relative_to(self._model_dir, checkpoint_path(self._model_dir, result.step))
            result = replace(result, between=False, checkpoint=where)
            self._uncommitted.append(result)
        return result

    def _publish_late(self, *results: Evaluated) -> None:
        for result in results:
            below = results_dir(self._model_dir, result.name)
            self._publish(result, *segments(self._model_dir, below, result.step))

    def _publish(self, *entries: Entry) -> None:
        sync_event_files(self._model_dir, entries)
        self._journal.publish(*entries)


class ObserverLedger:
    """The ledger of a call that does not train. It records results next to the writer's, if there is a journal.

    Args:
        model_dir: the directory of the observed run.
    """

    def __init__(self, model_dir: Path) -> None:
        self._model_dir = model_dir

    @property
    def epoch(self) -> int:
        """The epoch of the newest run."""
        lineage = lineage_of(self._model_dir)
        return 0 if lineage is None else lineage.epoch

    def check(self) -> None:
        """Does nothing, because an observer may always continue."""

    def for_save(self, step: int) -> Sequence[Entry]:
        """Returns nothing, because the first process records."""
        return ()

    def committed(self, step: int) -> None:
        """Does nothing, because the first process records."""

    def end(self, step: int, reason: str, *, failed: bool) -> None:
        """Does nothing, because the first process records."""

    def broken_off(self, step: int) -> None:
        """Does nothing, because the first process records."""

    def checkpoint_of(self, step: int) -> str | None:
        """Returns the newest checkpoint, if it is the one of a step."""
        newest = latest_checkpoint(self._model_dir)
        return newest if newest is not None and checkpoint_step(newest) == step else None

    def record(self, result: Evaluated) -> None:
        """Records a result."""
        lineage = lineage_of(self._model_dir)
        if lineage is not None:
            trim_leftovers(self._model_dir, lineage)
            below = results_dir(self._model_dir, result.name)
            told = segments(self._model_dir, below, result.step)
            storage = LocalStorage(self._model_dir, ready=begin_sync(self._model_dir, told))
            observe(storage, this_process(), result, *told, known=lineage)


def segments(model_dir: Path, below: Path, step: int) -> list[Segment]:
    """Returns the parts of event files that this process has written since the last call.

    Args:
        model_dir: the root of the event files.
        below: the directory whose files, including those of its subdirectories, are returned.
        step: the last step in these files.
    """
    root = model_dir.resolve()
    return [
        Segment(
            directory="" if written.path.parent == root else written.path.parent.relative_to(root).as_posix(),
            name=written.path.name,
            size=written.size,
            step=step,
        )
        for file in event_files_below(below)
        for written in file.take_written()
    ]


def this_process() -> str:
    """Returns the identity of the process that writes or observes, for readers of the journal."""
    return str(Holder.this_process(datetime.now(UTC)))


def relative_to(model_dir: str | os.PathLike[str], path: str | None) -> str:
    """Returns a path as the journal stores it: relative to the model_dir if it is inside."""
    if path is None:
        return ""
    inside = os.path.relpath(path, model_dir)
    return path if inside.startswith("..") else Path(inside).as_posix()


class ResultLog:
    """The log of results.

    The outermost call creates and closes it. Evaluations inside share its event files, one per directory.

    Args:
        ledger: the ledger that records results.

    Example:
        >>> import tempfile
        >>> from estimator_core._loop.result_log import ObserverLedger
        >>> directory = Path(tempfile.mkdtemp())
        >>> log = ResultLog(ObserverLedger(directory))
        >>> log.newest(directory / "eval")
        -1
    """

    def __init__(self, ledger: WriterLedger | ObserverLedger) -> None:
        self._ledger = ledger
        self._newest: dict[Path, int] = {}
        self._files: list[EventFile] = []

    def event_file(self, directory: Path) -> EventFile:
        """Returns the event file of an evaluation, which is open until `close`.

        Raises:
            SupersededError, StorageGoneError: the surrounding run must not continue. Nothing is created.
        """
        self._ledger.check()
        file = open_summary_writer(directory, epoch=lambda: self._ledger.epoch)
        file.held = isinstance(self._ledger, ObserverLedger)  # the epoch of a writer identifies its files
        self._files.append(file)
        return file

    def newest(self, directory: Path) -> int:
        """Returns the newest step with a result; -1 without results. A directory is read until a result is recorded."""
        known = self._newest.get(directory)
        return max(read_eval_metrics(directory), default=-1) if known is None else known

    def checkpoint_of(self, step: int) -> str | None:
        """Returns the checkpoint that contains the values of an evaluation at a step, or None."""
        return self._ledger.checkpoint_of(step)

    def record(self, directory: Path, result: Evaluated) -> None:
        """Records a result."""
        self._ledger.record(result)
        self._newest[directory] = result.step

    def close(self) -> None:
        """Closes the event files, because no further evaluation follows soon."""
        while self._files:
            self._files.pop().close()
