"""Reusable threads, because a simulation needs a few of them for a millisecond."""

from __future__ import annotations

import threading
from collections.abc import Callable

_idle: list[_Worker] = []


class _Worker:
    def __init__(self) -> None:
        self._ready = threading.Lock()
        self._ready.acquire()
        self._job: Callable[[], None] = _nothing
        threading.Thread(target=self._work, name="simulated process", daemon=True).start()

    def give(self, job: Callable[[], None]) -> None:
        self._job = job
        self._ready.release()

    def _work(self) -> None:
        while True:
            self._ready.acquire()
            job, self._job = self._job, _nothing
            job()
            _idle.append(self)


def _nothing() -> None:
    """The job of an idle worker."""


def in_thread(job: Callable[[], None]) -> None:
    """Starts a job, which must not raise, in a separate thread."""
    (_idle.pop() if _idle else _Worker()).give(job)
