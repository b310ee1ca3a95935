"""Accounts for the seconds of a training call."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator

STEP, INPUT, COMPILE, HOOKS, EVALUATION, CHECKPOINT = "step", "input", "compile", "hooks", "evaluation", "checkpoint"

_WORDS = {
    STEP: "a training step or its compilation",
    INPUT: "the next batch of the input",
    HOOKS: "a hook, a listener or an exporter",
    EVALUATION: "an evaluation",
    CHECKPOINT: "the checkpoint to be written",
}


def in_words(entry: str) -> str:
    """Returns a description of the activity of a run while an entry counts."""
    return _WORDS.get(entry, entry)


class TimeSpent:
    """An account of seconds in which every moment belongs to one entry, so that nothing is counted twice.

    "step" is all time that no other entry counts: the time for dispatching steps and waiting for the device.

    Attributes:
        seconds: the seconds by entry, up to the last change of entry.
        drawn: the seconds of the current entry that belong to "input". Drawing adds to them at every step, and the next
            change of entry books them.
        entry: the current entry, which `change` and `on` set.

    Example:
        >>> spent = TimeSpent()
        >>> with spent.on("hooks"), spent.on("evaluation"):
        ...     spent.charge("compile", 0.0)
        >>> sorted(spent.seconds)
        ['checkpoint', 'compile', 'evaluation', 'hooks', 'input', 'step']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys((STEP, INPUT, COMPILE, HOOKS, EVALUATION, CHECKPOINT), 0.0)
        self.drawn = 0.0
        self.entry = STEP
        self._since = time.perf_counter()

    @contextlib.contextmanager
    def on(self, entry: str) -> Generator[None]:
        """Counts the time inside the block towards an entry."""
        outer = self.change(entry)
        try:
            yield
        finally:
            self.change(outer)

    def change(self, entry: str) -> str:
        """Counts towards an entry from now on, and returns the previous entry."""
        now = time.perf_counter()
        self.seconds[self.entry] += now - self._since - self.drawn
        self.seconds[INPUT] += self.drawn
        self._since, self.drawn = now, 0.0
        before, self.entry = self.entry, entry
        return before

    @contextlib.contextmanager
    def compilations(self) -> Generator[None]:
        """Moves the time that jax reports for tracing and compiling inside the block to "compile"."""
        import jax.monitoring

        charged: list[tuple[float, float]] = []  # (end, seconds) of reports, outermost only

        def listen(event: str, duration_secs: float, **details: str | int) -> None:
            if not event.startswith("/jax/core/compile/"):
                return
            end = time.perf_counter()
            # A function that is traced inside another is reported separately, and again in the outer report.
            inside = [report for report in charged if report[0] > end - duration_secs]
            charged[len(charged) - len(inside) :] = [(end, duration_secs)]
            self.charge(COMPILE, max(0.0, duration_secs - sum(secs for _, secs in inside)))

        jax.monitoring.register_event_duration_secs_listener(listen)
        try:
            yield
        finally:
            jax.monitoring.unregister_event_duration_listener(listen)

    def charge(self, entry: str, seconds: float) -> None:
        """Moves seconds that have just passed from the current entry to another."""
        self.seconds[self.entry] -= seconds
        self.seconds[entry] += seconds
