"""Threads that decode long requests and encode long answers, apart from the event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

INLINE = 2**16  # bytes that the event loop itself decodes, because a thread would take longer
Result = TypeVar("Result")


class Decoding:
    """Threads for work that would block the event loop. Further work waits in a queue.

    Args:
        threads: the number of threads.
    """

    def __init__(self, threads: int = 2) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="decode")
        self._lock = threading.Lock()
        self._running = 0

    async def __call__(self, run: Callable[[], Result]) -> Result:
        """Returns the result of a function that takes long."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._counted, run)

    @property
    def busy(self) -> bool:
        """Returns whether a function runs."""
        return self._running > 0

    def _counted(self, run: Callable[[], Result]) -> Result:
        with self._lock:
            self._running += 1
        try:
            return _uncollected(run)
        finally:
            with self._lock:
                self._running -= 1

    def close(self) -> None:
        """Ends the threads after their current functions."""
        self._pool.shutdown(wait=False)


def _uncollected(run: Callable[[], Result]) -> Result:
    with without_collection():
        return run()


@contextmanager
def without_collection() -> Generator[None]:
    """Suspends cyclic garbage collection. A collection would visit millions of values while all threads wait."""
    with _LOCK:
        _PAUSED.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            was_enabled = _PAUSED.pop()
            if not _PAUSED and was_enabled:
                gc.enable()


_LOCK = threading.Lock()
_PAUSED: list[bool] = []
