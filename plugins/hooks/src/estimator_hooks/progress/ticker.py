"""Calls functions at intervals, all in one thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

#: The longest time in seconds that the thread sleeps, and that it stays after the last function was removed.
_MOST_SECS, _STAYS_SECS = 0.25, 1.0


@dataclass
class _Repeated:
    every: float
    due: float


class Ticker:
    """Calls functions at intervals, until they are removed. The thread ends soon after the last one.

    A thread per call would cost an evaluation of a few batches a tenth of its time, because of its start and of the
    wait for its end.

    Example:
        >>> from threading import Event
        >>> ticker, called = Ticker(), Event()
        >>> ticker.add(called.set, every=0.01)
        >>> called.wait(20)
        True
        >>> ticker.remove(called.set)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._repeated: dict[Callable[[], None], _Repeated] = {}
        self._thread: threading.Thread | None = None

    def add(self, function: Callable[[], None], *, every: float) -> None:
        """Calls a function every `every` seconds, for the first time after `every` seconds."""
        with self._lock:
            self._repeated[function] = _Repeated(every=every, due=time.monotonic() + every)
            if self._thread is None or not self._thread.is_alive():  # a forked process does not have the thread
                self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
                self._thread.start()

    def remove(self, function: Callable[[], None]) -> None:
        """Stops the calls of a function. It is not running when this method returns, and is not called again."""
        with self._lock:
            self._repeated.pop(function, None)

    def _run(self) -> None:
        last = time.monotonic()
        while True:
            with self._lock:
                pause = min((one.every for one in self._repeated.values()), default=_MOST_SECS)
            time.sleep(min(pause, _MOST_SECS))
            with self._lock:
                now = time.monotonic()
                last = now if self._repeated else last
                if now - last > _STAYS_SECS:
                    self._thread = None
                    return
                for function, one in self._repeated.items():
                    if now >= one.due:
                        one.due = now + one.every
                        function()
