"""Where a hook that writes summaries writes them."""

from __future__ import annotations

import os
from typing import Any, final

from estimator_core._summaries import NO_SUMMARIES, EventFile, open_summary_writer
from estimator_core.hooks import Run, SummaryWriter


@final
class HookWriter:
    """The writer a hook was given, that of its own directory, or the run's.

    The run looks after its own event file. That of a hook's own directory is flushed where the hook gives its `state`,
    since this is asked for before a checkpoint is committed, and closed where the hook ends.

    Args:
        output_dir: the hook's own directory.
        given: a writer, which comes first.
    """

    def __init__(self, output_dir: str | os.PathLike[str] | None, given: SummaryWriter | None) -> None:
        self._output_dir = output_dir
        self._given = given
        self._own: EventFile | None = None
        self._writer: SummaryWriter = NO_SUMMARIES

    def open(self, run: Run) -> None:
        """Chooses the writer; to be called in `after_create`."""
        if self._given is not None:
            self._writer = self._given
        elif self._output_dir is None:
            self._writer = run.summaries
        else:
            epoch = getattr(run.summaries, "epoch", None)
            self._writer = self._own = open_summary_writer(self._output_dir, resume_step=run.step, epoch=epoch)

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Writes one number."""
        self._writer.scalar(tag, value, step)

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """Writes the distribution of an array."""
        self._writer.histogram(tag, values, step)

    def image(self, tag: str, image: Any, step: int) -> None:
        """Writes one image."""
        self._writer.image(tag, image, step)

    def text(self, tag: str, text: str, step: int) -> None:
        """Writes a text."""
        self._writer.text(tag, text, step)

    def flush(self) -> None:
        """Flushes the hook's own event file; to be called in `state`."""
        if self._own is not None:
            self._own.flush()

    def close(self) -> None:
        """Closes the hook's own event file; to be called in `end`."""
        if self._own is not None:
            self._own.close()
