"""Threads that read and write during the scoring. Each is at most a few batches early or late."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

#: The number of batches that wait on either side. The next batch is ready in time, and memory stays bounded.
_WAITING = 2
_END: Any = object()
_T = TypeVar("_T")


def ahead(items: Generator[_T], *, most: int = _WAITING) -> Generator[_T]:
    """Yields the same items in the same order. A thread makes at most `most` of them in advance.

    An error of the items is raised in the place of its item. Closing this generator also closes `items`.

    Example:
        >>> list(ahead(number * number for number in range(4)))
        [0, 1, 4, 9]
    """
    with contextlib.closing(items), ThreadPoolExecutor(1, thread_name_prefix="estimator-predict-read") as pool:
        waiting = deque(pool.submit(next, items, _END) for _ in range(most))
        try:
            while (found := waiting.popleft().result()) is not _END:
                waiting.append(pool.submit(next, items, _END))
                yield found
        finally:
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def behind(
    add: Callable[[Mapping[str, np.ndarray]], None], *, most: int = _WAITING
) -> Generator[Callable[[Mapping[str, np.ndarray]], None]]:
    """Yields a function that runs `add` in a thread, in order. It waits while `most` calls are open.

    All calls have ended when the block is left. An error of a call is raised by a later call, or at the end of the
    block.

    Example:
        >>> found = []
        >>> with behind(lambda columns: found.append(sorted(columns))) as add:
        ...     add({"x": np.zeros(1)})
        >>> found
        [['x']]
    """
    with ThreadPoolExecutor(1, thread_name_prefix="estimator-predict-write") as pool:
        waiting: deque[Future[None]] = deque()

        def later(columns: Mapping[str, np.ndarray]) -> None:
            while len(waiting) >= most:
                waiting.popleft().result()
            waiting.append(pool.submit(add, columns))

        try:
            yield later
            while waiting:
                waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
