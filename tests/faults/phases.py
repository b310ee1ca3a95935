"""Records the phases of a run in a file as they begin and end, and sends a signal at one moment of one phase."""

from __future__ import annotations

import functools
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator_core._checkpoint import commit, journal_shelf
from estimator_core._export import pending
from estimator_core._journal import writer
from estimator_core._loop import evaluate_call, train_call
from estimator_core.hooks import Hook

#: Phase -> the location of the function whose call is that phase.
FUNCTIONS: dict[str, tuple[Any, str]] = {
    "start": (train_call, "find_start"),
    "record": (writer, "_append"),
    "trimming": (train_call, "trim_event_files"),
    "views": (train_call, "write_results_files"),
    "names": (journal_shelf.JournalShelf, "clean_up"),
    "evaluation": (evaluate_call, "evaluate_loop"),
    "arrays": (commit.orbax_io, "write_arrays"),
    "manifest": (commit, "seal"),
    "rename": (journal_shelf.JournalShelf, "_name"),
    "retention": (journal_shelf.JournalShelf, "_delete"),
    "deletion": (journal_shelf, "_remove"),
    "export": (pending.PendingExport, "_run"),
}


class Phases:
    """Records phases, and sends a signal to this process at a moment of one of them.

    Args:
        trace: the file. Each line is written at once, so that it shows where a killed process was.
        moment: `{"phase", "occurrence", "at", "signal"}`: the number of the call of the phase's function (from 0), then
            "begin", "end" or the seconds after its beginning, then the number of the signal. None means no signal.
    """

    def __init__(self, trace: Path, moment: dict[str, Any] | None) -> None:
        self._file = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._moment = moment
        self._calls: Counter[str] = Counter()

    def install(self) -> None:
        """Wraps the functions."""
        for phase, (owner, name) in FUNCTIONS.items():
            setattr(owner, name, self.noting(phase, getattr(owner, name)))

    def noting(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function, wrapped so that its calls are recorded."""

        @functools.wraps(function)
        def noted(*args: Any, **kwargs: Any) -> Any:
            number = self.begin(phase)
            try:
                return function(*args, **kwargs)
            finally:
                self.end(phase, number)

        return noted

    def begin(self, phase: str) -> int:
        """Records the beginning, and returns the occurrence number of this phase."""
        number = self._calls[phase]
        self._calls[phase] += 1
        self._note("begin", phase, number)
        at = self._at(phase, number)
        if at == "begin":
            self._send()
        elif isinstance(at, float):
            threading.Timer(at, self._send).start()
        return number

    def end(self, phase: str, number: int) -> None:
        """Records the end."""
        if self._at(phase, number) == "end":
            self._send()
        self._note("end", phase, number)

    def _at(self, phase: str, number: int) -> Any:
        moment = self._moment
        return moment["at"] if moment and (moment["phase"], moment["occurrence"]) == (phase, number) else None

    def _send(self) -> None:
        assert self._moment is not None
        self._note("signal", self._moment["phase"], self._moment["occurrence"])
        os.kill(os.getpid(), signal.Signals(self._moment["signal"]))

    def _note(self, what: str, phase: str, number: int) -> None:
        line = json.dumps({"what": what, "phase": phase, "number": number, "time": time.monotonic()})
        os.write(self._file, line.encode() + b"\n")


class Steps(Hook):
    """Records the compilation with the first steps as one phase, and then every few steps as a phase."""

    def __init__(self, phases: Phases, every: int) -> None:
        self._phases, self._every = phases, every
        self._under_way = ("compile", 0)

    def after_create(self, run: Any) -> None:
        self._under_way = ("compile", self._phases.begin("compile"))

    def next_step(self, step: int) -> int:
        return (step // self._every + 1) * self._every

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self._phases.end(*self._under_way)
        self._under_way = ("step", self._phases.begin("step"))
