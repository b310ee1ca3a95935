"""What a call waits for before its first step: a thread redraws it, since the call itself stands still."""

from __future__ import annotations

import contextvars
import functools
import time

from estimator_core.hooks import Run
from estimator_core.modes import ModeKeys
from estimator_hooks.progress.display import Display, shared
from estimator_hooks.progress.ticker import Ticker

OPENING, FIRST_BATCH, COMPILING = "opening the input", "first batch", "compiling the first step"

#: What tells one call of this process from all others that are under way.
Key = tuple[int, str, str | None]

_waiting: dict[Key, Waiting] = {}
_ticker = Ticker()


class Waiting:
    """Shows the stage that a call is at, and for how long, until its first step.

    Args:
        run: the call.
        display: where it is shown.
    """

    def __init__(self, run: Run, display: Display) -> None:
        self.display = display
        self.call = display.open(title(run))
        self._run, self._stage, self._since = run, OPENING, time.monotonic()
        # It is shown in the cell of a notebook that made it.
        self._tell = functools.partial(contextvars.copy_context().run, self._show)
        _ticker.add(self._tell, every=display.refresh_secs)

    def at(self, stage: str) -> None:
        """Says that the next stage begins."""
        self._stage, self._since = stage, time.monotonic()
        if self.display.live:
            self._show()

    def end(self) -> None:
        """Ends that; the call stays open."""
        _ticker.remove(self._tell)

    def text(self) -> str:
        """What the call waits for.

        An evaluation has no checkpoint of its own to restore: the first batch is what takes its time.
        """
        if self._stage != FIRST_BATCH:
            return self._stage
        if self._run.mode != ModeKeys.TRAIN or self._run.activity == "input":
            return "reading the first batch"
        step = self._run.first_step
        return f"restoring the checkpoint of step {step}" if step else "tracing the model, making initial values"

    def _show(self) -> None:
        self.display.wait(self.call, self.text(), time.monotonic() - self._since)


def title(run: Run) -> str:
    """How a call is named."""
    if run.mode == ModeKeys.TRAIN:
        return "train"
    return "evaluate" if run.name is None else f"evaluate {run.name}"


def key_of(run: Run) -> Key:
    """The same for whatever view of a run a plugin is handed: observers and hooks see different objects."""
    return id(run.config), run.mode, run.name


def begin_waiting(run: Run) -> None:
    """Shows a call from its first moment on."""
    _waiting[key_of(run)] = Waiting(run, shared.acquire(None))


def waiting(run: Run) -> Waiting | None:
    """What shows that a call waits; None for one that nobody announced."""
    return _waiting.get(key_of(run))


def end_waiting(run: Run) -> Waiting | None:
    """Ends the wait and hands its place in the display over; None where it is over already."""
    found = _waiting.pop(key_of(run), None)
    if found is not None:
        found.end()
    return found


def forget(run: Run) -> None:
    """Closes what a call has left that ended before its first step."""
    found = end_waiting(run)
    if found is not None:
        found.display.close(found.call, None)
        shared.release()
