"""Progress as plain lines, for logs and pipes."""

from __future__ import annotations

from typing import TextIO

from estimator_hooks.progress.figures import Figures, as_clock, as_text


class LineDisplay:
    """Writes a line every ten seconds, and one when an outermost call, or a call with an earlier line, ends."""

    refresh_secs = 10.0
    live = False

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._names: dict[int, str] = {}
        self._shown: dict[int, int] = {}
        self._inside: set[int] = set()

    def open(self, name: str, *, inside: bool) -> int:
        """Adds a call, and returns its number."""
        call = len(self._names)
        self._names[call] = name
        if inside:
            self._inside.add(call)
        return call

    def wait(self, call: int, text: str, elapsed: float) -> None:
        """Writes what a call has been waiting for."""
        self._output.write(f"{self._names[call]}: {text}, {as_clock(elapsed)}\n")
        self._output.flush()

    def show(self, call: int, figures: Figures) -> None:
        """Writes a line, except in the first ten seconds of a call."""
        if figures.elapsed >= self.refresh_secs:
            self._write(call, figures)

    def close(self, call: int, figures: Figures | None) -> None:
        """Writes the last line."""
        wanted = call not in self._inside or call in self._shown
        if figures is not None and wanted and self._shown.get(call) != figures.done:
            self._write(call, figures)

    def drop(self, call: int) -> None:
        """Writes nothing more of a call."""

    def _write(self, call: int, figures: Figures) -> None:
        self._output.write(f"{self._names[call]}: {as_text(figures)}\n")
        self._output.flush()
        self._shown[call] = figures.done
