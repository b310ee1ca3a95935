"""Selects the display of progress: a live bar if the output is a terminal, otherwise plain lines."""

from __future__ import annotations

import io
import os
import sys
from typing import Protocol, TextIO, cast

from estimator_hooks.progress.figures import Figures
from estimator_hooks.progress.lasting import LastingOutput
from estimator_hooks.progress.lines import LineDisplay

#: Variables that make rich treat an output as a terminal although it does not look like one.
_MAY_MEAN_A_TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class Nowhere(io.StringIO):
    """An output that discards everything."""

    def write(self, s: str, /) -> int:
        """Discards the text."""
        return len(s)


class Display(Protocol):
    """Shows one or more calls at a time, because an evaluation may run inside a training."""

    refresh_secs: float
    live: bool  # whether new output replaces the previous output

    def open(self, name: str) -> int:
        """Adds a call, and returns its number."""
        ...

    def wait(self, call: int, text: str, elapsed: float) -> None:
        """Shows what a call waits for before its first step, and for how many seconds. Any thread may call it."""
        ...

    def show(self, call: int, figures: Figures) -> None:
        """Shows the progress of a call."""
        ...

    def close(self, call: int, figures: Figures | None) -> None:
        """Shows a call for the last time."""
        ...


class SharedDisplay:
    """The display that all runs of this process share while one of them is active."""

    def __init__(self) -> None:
        self._display: Display | None = None
        self._users = 0

    def acquire(self, output: TextIO | None) -> Display:
        """Returns the display. The first call creates it."""
        if self._display is None:
            self._display = notebook_display() if output is None else None
            # A process without a terminal, such as a daemon, may have no stderr.
            self._display = self._display or make_display(output or sys.stderr or Nowhere())
        self._users += 1
        return self._display

    def release(self) -> None:
        """Ends the use by one call. After the last call, the display is discarded."""
        self._users -= 1
        if self._users == 0:
            self._display = None


shared = SharedDisplay()


def notebook_display() -> Display | None:
    """Returns the display in the output of a notebook cell, or None outside of notebooks."""
    from estimator_hooks.notebook import shell

    if shell() is None:
        return None
    from estimator_hooks.progress.notebook import NotebookDisplay

    return NotebookDisplay()


def make_display(output: TextIO) -> Display:
    """A live bar for a terminal, plain lines for everything else. Faults of the output end nothing."""
    lasting = cast("TextIO", LastingOutput(output))
    # The import of rich takes 70 ms, which a start with a log file should not pay.
    if _is_terminal(output) or any(os.environ.get(name) for name in _MAY_MEAN_A_TERMINAL):
        from rich.console import Console

        console = Console(file=lasting)
        if console.is_terminal and not console.is_dumb_terminal:
            from estimator_hooks.progress.bar import BarDisplay

            return BarDisplay(console)
    return LineDisplay(lasting)


def _is_terminal(output: TextIO) -> bool:
    isatty = getattr(output, "isatty", None)  # a replacement of stderr may have only `write`
    try:
        return isatty is not None and isatty()
    except ValueError:  # the output is closed
        return False
