"""What evaluations of one outermost call have written: event files that stay open, results that are recorded."""

from __future__ import annotations

from pathlib import Path

from estimator_core._journal import Evaluated
from estimator_core._loop.ledgers import Ledger
from estimator_core._summaries import EventFile, open_summary_writer, read_eval_metrics


class ResultLog:
    """Made by the outermost call, which closes it; evaluations inside share its event files, one a directory.

    Args:
        ledger: where results are recorded.

    Example:
        >>> import tempfile
        >>> from estimator_core._loop.ledgers import ObserverLedger
        >>> directory = Path(tempfile.mkdtemp())
        >>> log = ResultLog(ObserverLedger(directory))
        >>> log.newest(directory / "eval")
        -1
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._newest: dict[Path, int] = {}
        self._files: list[EventFile] = []

    def event_file(self, directory: Path) -> EventFile:
        """The event file of an evaluation, open until `close`.

        Raises:
            SupersededError, StorageGoneError: the run around it may not go on; nothing is made.
        """
        self._ledger.check()
        file = open_summary_writer(directory, epoch=lambda: self._ledger.epoch)
        self._files.append(file)
        return file

    def newest(self, directory: Path) -> int:
        """The newest step with a result, -1 if there is none; a directory is read once, until something is recorded."""
        known = self._newest.get(directory)
        return max(read_eval_metrics(directory), default=-1) if known is None else known

    def may_be_saved(self, step: int) -> bool:
        """Whether there may be a checkpoint of a step."""
        return self._ledger.may_be_saved(step)

    def record(self, directory: Path, result: Evaluated) -> None:
        """Records a result."""
        self._ledger.record(result)
        self._newest[directory] = result.step

    def close(self) -> None:
        """Closes the event files: no further evaluation follows soon."""
        while self._files:
            self._files.pop().close()
