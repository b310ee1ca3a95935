"""The results that evaluations of one outermost call have written: event files that stay open, newest steps."""

from __future__ import annotations

from pathlib import Path

from estimator_core._summaries import EventFile, open_summary_writer
from estimator_core._summaries.eval_metrics import read_eval_metrics


class ResultLog:
    """Made by the outermost call, which closes it; evaluations inside share its event files, one a directory.

    Example:
        >>> import tempfile
        >>> log, directory = ResultLog(), Path(tempfile.mkdtemp())
        >>> log.newest(directory)
        -1
        >>> log.note(directory, 20)
        >>> log.newest(directory)
        20
    """

    def __init__(self) -> None:
        self._newest: dict[Path, int] = {}
        self._files: list[EventFile] = []

    def event_file(self, directory: Path, *, resume_step: int | None = None) -> EventFile:
        """The event file of an evaluation, open until `close`.

        Args:
            directory: of the evaluation.
            resume_step: what is recorded behind this step is taken back; None: nothing is.
        """
        file = open_summary_writer(directory, resume_step=resume_step)
        self._files.append(file)
        return file

    def newest(self, directory: Path) -> int:
        """The newest step with a result, -1 if there is none; a directory is read once, until something is noted."""
        known = self._newest.get(directory)
        return max(read_eval_metrics(directory), default=-1) if known is None else known

    def note(self, directory: Path, step: int) -> None:
        """Notes that a result was written."""
        self._newest[directory] = step

    def close(self) -> None:
        """Closes the event files: no further evaluation follows soon."""
        while self._files:
            self._files.pop().close()
