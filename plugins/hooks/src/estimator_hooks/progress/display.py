"""Selects the display of progress: a live bar if the output is a terminal, otherwise plain lines."""

from __future__ import annotations

import functools
import io
import os
import sys
import threading
from collections.abc import Callable
from typing import Protocol, TextIO, cast

from estimator_hooks.progress.failsafe_output import LastingOutput
from estimator_hooks.progress.figures import Figures
from estimator_hooks.progress.lines import LineDisplay

#: Variables that make rich treat an output as a terminal although it does not look like one.
_MAY_MEAN_A_TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class Nowhere(io.StringIO):
    """An output that discards everything."""

    def write(self, s: str, /) -> int:
        """Discards the text."""
        return len(s)


class Display(Protocol):
    """Shows one or more calls at a time.

    An evaluation may run inside a training, and threads run beside one another.
    """

    refresh_secs: float
    live: bool  # whether new output replaces the previous output

    def open(self, name: str, *, inside: bool) -> int:
        """Adds a call, and returns its number. `inside`: whether it runs inside another call of the display."""
        ...

    def wait(self, call: int, text: str, elapsed: float) -> None:
        """Shows what a call waits for before its first step, and for how many seconds. Any thread may call it."""
        ...

    def show(self, call: int, figures: Figures) -> None:
        """Shows the progress of a call."""
        ...

    def close(self, call: int, figures: Figures | None) -> None:
        """Shows a call for the last time. None: it ended before its first step."""
        ...

    def drop(self, call: int) -> None:
        """Removes a call, which another display shows."""
        ...


class Shown:
    """One call in a display.

    Args:
        display: the display.
        call: the number of the call in the display.
        released: a function that is called once the call is over.

    Attributes:
        display: the display.
    """

    def __init__(self, display: Display, call: int, released: Callable[[], None]) -> None:
        self.display = display
        self._call = call
        self._released = released

    def wait(self, text: str, elapsed: float) -> None:
        """Shows what the call waits for."""
        self.display.wait(self._call, text, elapsed)

    def show(self, figures: Figures) -> None:
        """Shows the progress of the call."""
        self.display.show(self._call, figures)

    def close(self, figures: Figures | None) -> None:
        """Shows the call for the last time."""
        self.display.close(self._call, figures)
        self._released()

    def drop(self) -> None:
        """Removes the call from the display."""
        self.display.drop(self._call)
        self._released()


class SharedDisplays:
    """The displays of this process. All calls with one output share its display while one of them is active."""

    def __init__(self) -> None:
        self._displays: dict[int | None, Display] = {}
        self._users: list[tuple[int | None, int]] = []  # the output and the thread of each call
        self._lock = threading.Lock()

    def open(self, output: TextIO | None, name: str) -> Shown:
        """Adds a call to the display of an output, which the first call creates.

        None: the display of the call in which this one runs, otherwise a notebook or stderr.
        """
        thread = threading.get_ident()
        with self._lock:
            around = next((one for one in reversed(self._users) if one[1] == thread), (None, thread))
            user = around if output is None else (id(output), thread)
            display = self._displays.get(user[0]) or _make(output)
            self._displays[user[0]] = display
            inside = user in self._users
            self._users.append(user)
            call = display.open(name, inside=inside)
        return Shown(display, call, functools.partial(self._release, user))

    def _release(self, user: tuple[int | None, int]) -> None:
        with self._lock:
            self._users.remove(user)
            if all(output != user[0] for output, _ in self._users):
                del self._displays[user[0]]


shared = SharedDisplays()


def _make(output: TextIO | None) -> Display:
    found = notebook_display() if output is None else None
    # A process without a terminal, such as a daemon, may have no stderr.
    return found or make_display(output or sys.stderr or Nowhere())


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
