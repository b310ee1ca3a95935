"""Shows what a call waits for before its first step. A thread redraws it, because the call itself is blocked."""

from __future__ import annotations

import contextvars
import functools
import threading
import time

from estimator_core.hooks import Run
from estimator_core.modes import ModeKeys
from estimator_hooks.progress.display import Shown, shared
from estimator_hooks.progress.ticker import Ticker

OPENING, FIRST_BATCH, COMPILING = "opening the input", "first batch", "compiling the first step"

#: The values that identify one call of this process among all calls in progress.
Key = tuple[int, int, str, str | None]

_waiting: dict[Key, Waiting] = {}
_ticker = Ticker()


class Waiting:
    """Shows the stage of a call, and its duration, until the first step.

    Args:
        run: the call.

    Attributes:
        shown: the call in its display.
    """

    def __init__(self, run: Run) -> None:
        self.shown: Shown = shared.open(None, title(run))
        self._run, self._stage, self._since = run, OPENING, time.monotonic()
        # The context selects the cell of the notebook that made the call.
        self._tell = functools.partial(contextvars.copy_context().run, self._show)
        _ticker.add(self._tell, every=self.shown.display.refresh_secs)

    def at(self, stage: str) -> None:
        """Records that the next stage begins."""
        self._stage, self._since = stage, time.monotonic()
        if self.shown.display.live:
            self._show()

    def end(self) -> None:
        """Stops the updates. The call remains in the display."""
        _ticker.remove(self._tell)

    def text(self) -> str:
        """Returns what the call waits for.

        An evaluation does not restore a checkpoint at this stage, so it waits for the first batch.
        """
        if self._stage != FIRST_BATCH:
            return self._stage
        if self._run.mode != ModeKeys.TRAIN or self._run.activity == "input":
            return "reading the first batch"
        step = self._run.first_step
        return f"restoring the checkpoint of step {step}" if step else "tracing the model, making initial values"

    def _show(self) -> None:
        self.shown.wait(self.text(), time.monotonic() - self._since)


def title(run: Run) -> str:
    """Returns the name of a call."""
    if run.mode == ModeKeys.TRAIN:
        return "train"
    return "evaluate" if run.name is None else f"evaluate {run.name}"


def key_of(run: Run) -> Key:
    """Returns the key of a call. Observers and hooks see different run objects of one call, but the same key.

    Several threads may evaluate one Estimator at a time. All observers and hooks of a call run in its thread.
    """
    return threading.get_ident(), id(run.config), run.mode, run.name


def begin_waiting(run: Run) -> None:
    """Shows a call from its start."""
    _waiting[key_of(run)] = Waiting(run)


def waiting(run: Run) -> Waiting | None:
    """Returns the display of a waiting call, or None if the call was not announced."""
    return _waiting.get(key_of(run))


def end_waiting(run: Run) -> Waiting | None:
    """Ends the wait, and returns its place in the display, or None if the wait is over already."""
    found = _waiting.pop(key_of(run), None)
    if found is not None:
        found.end()
    return found


def forget(run: Run) -> None:
    """Closes the display of a call that ended before its first step."""
    found = end_waiting(run)
    if found is not None:
        found.shown.close(None)


def shown_elsewhere(run: Run) -> None:
    """Removes the announcement of a call that a hook shows in an output of its own."""
    found = end_waiting(run)
    if found is not None:
        found.shown.drop()
