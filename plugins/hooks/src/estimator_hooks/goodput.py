"""Measures how a training call spends its time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from estimator_core.hooks import Hook, Run

_log = logging.getLogger("estimator_hooks")
_ENTRIES = {
    "step": "steps",
    "input": "waiting for input",
    "compile": "tracing and compiling",
    "evaluation": "evaluation",
    "checkpoint": "saving checkpoints",
    "hooks": "hooks",
}


class GoodputHook(Hook):
    """Logs at the end of training how much time was spent on steps, and on everything else.

    Every second is counted once: compilation inside an evaluation counts as compilation. A resumed call continues the
    account of the interrupted call. Goodput is the fraction of time spent on steps.

    Attributes:
        seconds: the seconds by entry, after the run.
        hooks: the seconds of each hook by class, after the run. They include evaluations inside a hook.

    Example:
        >>> GoodputHook().next_step(0) is None
        True
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.hooks: dict[str, float] = {}
        self._run: Run | None = None
        self._before: dict[str, float] = {}
        self._hooks_before: dict[str, float] = {}

    def begin(self, run: Run) -> None:
        """Opens the account."""
        self._run, self._before, self.seconds = run, {}, {}
        self._hooks_before, self.hooks = {}, {}

    def after_create(self, run: Run) -> None:
        """Starts a new account for a new call."""
        if not run.resumed:
            self._before, self._hooks_before = {}, {}

    def end(self, run: Run) -> None:
        """Logs the account."""
        self.hooks = self._of_hooks()
        self.seconds, self._run = self._account(), None
        _log.info("%s", report(self.seconds))

    def state(self) -> Mapping[str, Any]:
        """Returns the account so far."""
        return {"seconds": self._account(), "hooks": self._of_hooks()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the account of the interrupted call."""
        self._before, self._hooks_before = dict(state["seconds"]), dict(state.get("hooks", {}))

    def _of_hooks(self) -> dict[str, float]:
        if self._run is None:
            return dict(self.hooks or self._hooks_before)
        now = self._run.hook_seconds
        names = self._hooks_before.keys() | now.keys()
        return {name: self._hooks_before.get(name, 0.0) + now.get(name, 0.0) for name in sorted(names)}

    def _account(self) -> dict[str, float]:
        if self._run is None:
            return dict(self.seconds or self._before)
        now = self._run.seconds
        return {entry: self._before.get(entry, 0.0) + now.get(entry, 0.0) for entry in _ENTRIES}


def report(seconds: Mapping[str, float]) -> str:
    """Returns the account as text.

    Args:
        seconds: the seconds by entry.

    Example:
        >>> report({"step": 6.0, "input": 1.0, "compile": 3.0})[:68]
        'Goodput 60.0% of 10.0 seconds: steps 6.0 s (60.0%), tracing and comp'
    """
    total = sum(seconds.values())
    if total <= 0:
        return "Goodput: no time was recorded."
    parts = [(seconds.get(entry, 0.0), name) for entry, name in _ENTRIES.items() if seconds.get(entry, 0.0) > 0]
    shown = [
        f"{name} {secs:.1f} s ({100 * secs / total:.1f}%)" for secs, name in sorted(parts, key=lambda part: -part[0])
    ]
    return f"Goodput {100 * seconds.get('step', 0.0) / total:.1f}% of {total:.1f} seconds: {', '.join(shown)}"
