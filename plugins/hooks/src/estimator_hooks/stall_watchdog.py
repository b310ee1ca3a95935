"""Logs the stacks of the program when no step finishes."""

from __future__ import annotations

import faulthandler
import logging
import sys
import tempfile
import threading
import time
from pathlib import Path

from estimator_core.builtin_hooks import positive_secs
from estimator_core.hooks import Hook, Run, StepOutputs, Wake
from estimator_hooks.step_done import wait_for_step

_log = logging.getLogger("estimator_hooks")


class StallWatchdogHook(Hook):
    """Logs the stacks of all threads once per stall, when no step has finished for some time.

    A long evaluation or checkpoint between two steps counts as a stall too. The stack shows the cause.

    Args:
        timeout_secs: the longest time for a step, including everything since the previous step.

    Raises:
        ArgumentError, ArgumentTypeError: `timeout_secs` is not a positive number.

    Example:
        >>> StallWatchdogHook(timeout_secs=600.0).next_step(0)
        1
    """

    def __init__(self, timeout_secs: float = 600.0) -> None:
        self._timeout_secs = positive_secs(self, "timeout_secs", timeout_secs)
        self._beat: tuple[int, float] = (0, 0.0)
        self._started = False
        self._stalled = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def after_create(self, run: Run) -> None:
        """Starts the thread that watches."""
        self._beat, self._started, self._stalled = (run.step, time.monotonic()), False, False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stall-watchdog", daemon=True)
        self._thread.start()

    def next_step(self, step: int) -> int | Wake:
        """Returns the first step. Afterwards the clock decides: four times within the timeout."""
        return Wake(time=self._beat[1] + self._timeout_secs / 4) if self._started else step + 1

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Records that a step is done."""
        wait_for_step(out)
        now, before = time.monotonic(), self._beat[1]
        self._beat, self._started = (step, now), True
        if self._stalled:
            self._stalled = False  # after the new beat, or the thread would report the old one again
            _log.warning("StallWatchdogHook: step %d finished after %.0f seconds.", step, now - before)

    def end(self, run: Run) -> None:
        """Stops the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _watch(self) -> None:
        while not self._stop.wait(self._timeout_secs / 4):
            step, when = self._beat
            secs = time.monotonic() - when
            if secs >= self._timeout_secs and not self._stalled:
                self._stalled = True
                _log.error(
                    "StallWatchdogHook: no step has finished for %.0f seconds; the last one was step %d. The threads "
                    "of the process:\n%s",
                    secs,
                    step,
                    stacks(),
                )


def stacks() -> str:
    """Returns the Python stacks of all threads."""
    with tempfile.TemporaryFile() as file:  # faulthandler needs a file descriptor
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().decode(errors="replace").replace(str(Path(sys.prefix)), "...")
