"""Shows progress as live bars in a terminal, with rich."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from estimator_hooks.progress.failsafe_output import LastingOutput
from estimator_hooks.progress.figures import Figures, as_clock


class BarDisplay:
    """Shows one bar per call. An evaluation appears below its training, and disappears when it ends.

    Nothing is drawn between two readings. Log lines appear above the bars.
    """

    refresh_secs = 0.25
    live = True

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.fields[loss]}", style="bold"),
            TextColumn("{task.fields[rate]}", style="cyan"),
            TextColumn("{task.fields[clock]}"),
            console=console,
            auto_refresh=False,
            expand=True,
        )
        self._logs = contextlib.ExitStack()
        self._calls: list[int] = []
        self._inside: set[int] = set()

    def open(self, name: str, *, inside: bool) -> int:
        """Adds a bar."""
        if not self._calls:
            file: Any = self._progress.console.file
            terminal = file.stream if isinstance(file, LastingOutput) else file
            self._progress.start()
            self._logs.callback(_redirect_logs(terminal))
        task = self._progress.add_task(name, total=None, count="", loss="", rate="", clock="")
        self._calls.append(task)
        if inside:
            self._inside.add(task)
        self._progress.refresh()
        return task

    def wait(self, call: int, text: str, elapsed: float) -> None:
        """Shows what a call waits for."""
        self._progress.update(TaskID(call), count=text, clock=as_clock(elapsed), refresh=True)

    def show(self, call: int, figures: Figures) -> None:
        """Redraws a bar."""
        fields: Any = _fields(figures)
        self._progress.update(TaskID(call), completed=figures.done, total=figures.total, refresh=True, **fields)

    def close(self, call: int, figures: Figures | None) -> None:
        """Draws a bar for the last time, and removes it if its call is inside another call."""
        if figures is not None:
            self.show(call, figures)
        self._end(call, removed=call in self._inside)

    def drop(self, call: int) -> None:
        """Removes a bar."""
        self._end(call, removed=True)

    def _end(self, call: int, *, removed: bool) -> None:
        self._calls.remove(call)
        if removed:
            self._progress.remove_task(TaskID(call))
            self._progress.refresh()
        if not self._calls:
            self._logs.close()
            self._progress.stop()


def _fields(figures: Figures) -> dict[str, str]:
    rate = "" if figures.steps_per_sec is None else f"{figures.steps_per_sec:.3g} steps/s"
    if figures.examples_per_sec is not None:
        rate += f" {figures.examples_per_sec:.4g} ex/s"
    left = "" if figures.secs_left is None else f" < {as_clock(figures.secs_left)}"
    return {
        "count": str(figures.done) if figures.total is None else f"{figures.done}/{figures.total}",
        "loss": "" if figures.loss is None else f"loss {figures.loss:.5g}",
        "rate": rate,
        "clock": f"{as_clock(figures.elapsed)}{left}",
    }


def _redirect_logs(terminal: Any) -> Any:
    """Sends log handlers that write to the terminal through the display. Returns a stack that undoes it.

    The display replaces `sys.stderr` and `sys.stdout`, but handlers keep the stream that they were created with.
    """
    changed: list[tuple[logging.StreamHandler[Any], Any]] = []
    for name in (None, "estimator_core", "estimator_hooks"):
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream in (
                terminal,
                sys.__stderr__,
                sys.__stdout__,
            ):
                changed.append((handler, handler.setStream(sys.stderr)))

    def undo() -> None:
        for handler, stream in changed:
            handler.setStream(stream)

    return undo
