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
        self._calls: dict[int, str] = {}
        self._lines: dict[int, str] = {}
        self._points: list[tuple[float, float]] = []
        self._lock = threading.RLock()  # another thread shows what a call waits for

    def open(self, name: str) -> int:
        """Adds a bar."""
        with self._lock:
            call = max(self._calls, default=-1) + 1
            self._calls[call] = name
            self.wait(call, "starting", 0.0)
        return call

    def wait(self, call: int, text: str, elapsed: float) -> None:
        """Shows what a call waits for before its first step."""
        self._draw(call, f"{bar(0, None)} {escape(text)} {as_clock(elapsed)}")

    def show(self, call: int, figures: Figures) -> None:
        """Redraws a bar. The loss of the outermost call becomes a point of the curve."""
        with self._lock:
            if figures.loss is not None and call == min(self._calls):
                self._add(figures.done, figures.loss)
            self._draw(call, f"{bar(figures.done, figures.total)} {escape(as_text(figures))}")

    def close(self, call: int, figures: Figures | None) -> None:
        """Draws a call for the last time, and removes it if it is inside another call."""
        with self._lock:
            if figures is None:
                self._draw(call, "ended before its first step")
            else:
                self.show(call, replace(figures, total=figures.total or figures.done, secs_left=None))
            if len(self._calls) > 1:
                del self._lines[call]
                self._update()
            del self._calls[call]

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
