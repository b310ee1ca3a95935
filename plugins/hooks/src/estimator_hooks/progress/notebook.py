"""Shows progress in a notebook: a bar for every call in progress, and the loss as a growing curve."""

from __future__ import annotations

import threading
from dataclasses import replace
from html import escape
from typing import Any

from estimator_hooks.notebook.html import bar, curve
from estimator_hooks.progress.figures import Figures, as_clock, as_text

_MOST_POINTS = 400


class NotebookDisplay:
    """Writes one output of the cell, and replaces it twice per second. It remains when the calls are over.

    Args:
        display: a function that shows HTML and returns a handle with `update(html)`. Default: that of IPython.
    """

    refresh_secs = 0.5
    live = True

    def __init__(self, display: Any = None) -> None:
        self._display = display or _of_ipython
        self._handle: Any = None
        self._opened = 0
        self._calls: dict[int, str] = {}
        self._lines: dict[int, str] = {}
        self._inside: set[int] = set()
        self._curve: int | None = None  # the call whose loss is drawn
        self._points: list[tuple[float, float]] = []
        self._lock = threading.RLock()  # another thread shows what a call waits for

    def open(self, name: str, *, inside: bool) -> int:
        """Adds a bar."""
        with self._lock:
            call = self._opened
            self._opened += 1
            self._calls[call] = name
            if inside:
                self._inside.add(call)
            self.wait(call, "starting", 0.0)
        return call

    def wait(self, call: int, text: str, elapsed: float) -> None:
        """Shows what a call waits for before its first step."""
        self._draw(call, f"{bar(0, None)} {escape(text)} {as_clock(elapsed)}")

    def show(self, call: int, figures: Figures) -> None:
        """Redraws a bar. The losses of the first call that has one are the points of the curve."""
        with self._lock:
            if self._curve is None and figures.loss is not None:
                self._curve = call
            if figures.loss is not None and call == self._curve:
                self._add(figures.done, figures.loss)
            drawn = "" if figures.cut_short and figures.total is None else bar(figures.done, figures.total)
            self._draw(call, f"{drawn} {escape(as_text(figures))}")

    def close(self, call: int, figures: Figures | None) -> None:
        """Draws a call for the last time, and removes it if it is inside another call."""
        with self._lock:
            if figures is None:
                self._draw(call, "ended before its first step")
            else:
                total = figures.total or (None if figures.cut_short else figures.done)
                self.show(call, replace(figures, total=total, secs_left=None))
            if call in self._inside:
                self.drop(call)
            else:
                del self._calls[call]

    def drop(self, call: int) -> None:
        """Removes a bar."""
        with self._lock:
            del self._calls[call], self._lines[call]
            self._update()

    def _add(self, step: int, loss: float) -> None:
        if self._points and step <= self._points[-1][0]:
            return
        self._points.append((step, loss))
        if len(self._points) > _MOST_POINTS:
            del self._points[1:-1:2]  # drops every second point and keeps both ends

    def _draw(self, call: int, html: str) -> None:
        with self._lock:
            if call in self._calls:
                self._lines[call] = f"<div><b>{escape(self._calls[call])}</b> {html}</div>"
                self._update()

    def _update(self) -> None:
        html = "".join(self._lines.values()) + curve(self._points)
        if self._handle is None:
            self._handle = self._display(html)
        else:
            self._handle.update(html)


def _of_ipython(html: str) -> Any:
    from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

    class Handle:
        def __init__(self) -> None:
            self._handle: Any = display(HTML(html), display_id=True)

        def update(self, html: str) -> None:
            self._handle.update(HTML(html))

    return Handle()
