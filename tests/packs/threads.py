"""Threads that save and read checkpoints together, instead of processes."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Threads:
    """A coordinator of threads. They agree through memory."""

    def __init__(self, index: int, barrier: threading.Barrier, told: dict[int, str | None]) -> None:
        self.index, self.count, self._barrier, self._told = index, len(told), barrier, told

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        self._told[self.index] = value
        self._barrier.wait(60)
        values = [self._told[index] for index in range(self.count)]
        self._barrier.wait(60)
        return [value for value in values if value is not None]

    def tell(self, topic: str, value: str | None, timeout: float) -> str:
        return self.agree(topic, value or "null", timeout)[0]


def in_threads(count: int, do: Callable[[Any], Any]) -> list[Any]:
    """Returns the results of all threads."""
    barrier, told = threading.Barrier(count), dict.fromkeys(range(count))
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda index: do(Threads(index, barrier, told)), range(count)))
