"""Where a hook that writes summaries writes them."""

from __future__ import annotations

import os
from typing import final

from estimator_core._summaries import NO_SUMMARIES, EventFile, open_summary_writer
from estimator_core.hooks import Run, SummaryWriter


@final
class HookWriter:
    """Writes to the writer that a hook was given, to the hook's own directory, or to the run's writer.

    The run takes care of its own event file. The event file of a hook's own directory is flushed in the hook's `state`,
    which is called before a checkpoint is committed. It is closed in the hook's `end`.

    Args:
        output_dir: the hook's own directory.
        given: a writer, which takes precedence.
    """

    def __init__(self, output_dir: str | os.PathLike[str] | None, given: SummaryWriter | None) -> None:
        self._output_dir = output_dir
        self._given = given
        self._own: EventFile | None = None
        self._writer: SummaryWriter = NO_SUMMARIES

    def open(self, run: Run) -> None:
        """Chooses the writer. Call it in `after_create`."""
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

    def histogram(self, tag: str, values: object, step: int) -> None:
        """Writes the distribution of an array."""
        self._writer.histogram(tag, values, step)

    def image(self, tag: str, image: object, step: int) -> None:
        """Writes one image."""
        self._writer.image(tag, image, step)

    def text(self, tag: str, text: str, step: int) -> None:
        """Writes a text."""
        self._writer.text(tag, text, step)

    def event(self, event: object, step: int) -> None:
        """Writes an event."""
        self._writer.event(event, step)

    def flush(self) -> None:
        """Flushes the hook's own event file. Call it in `state`."""
        if self._own is not None:
            self._own.flush()

    def close(self) -> None:
        """Closes the hook's own event file. Call it in `end`."""
        if self._own is not None:
            self._own.close()
