"""Lines of a growing file, and answers of an engine that are not asked for too often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

_POLL_SECS = 0.1
_Answer = TypeVar("_Answer")


class Kept(Generic[_Answer]):
    """Answers about jobs, each kept for a while: the threads that follow a job ask its engine once together.

    Args:
        ask: asks about a job.
        secs: how long an answer is kept.

    Example:
        >>> asked = []
        >>> kept = Kept(lambda job: asked.append(job) or len(asked), secs=60.0)
        >>> kept.of("a"), kept.of("a"), kept.of("b")
        (1, 1, 2)
    """

    def __init__(self, ask: Callable[[str], _Answer], secs: float) -> None:
        self._ask, self._secs = ask, secs
        self._lock = threading.Lock()
        self._answers: dict[str, tuple[float, _Answer]] = {}

    def of(self, job_id: str) -> _Answer:
        """The answer about a job, at most so many seconds old."""
        with self._lock:
            when, answer = self._answers.get(job_id, (0.0, None))
            if answer is None or time.monotonic() - when > self._secs:
                answer = self._ask(job_id)
                self._answers[job_id] = time.monotonic(), answer
            return answer

    def forget(self, job_id: str) -> None:
        """The next answer about a job is a new one: something was done to the job."""
        with self._lock:
            self._answers.pop(job_id, None)


def follow_file(path: Path, ended: Callable[[], bool]) -> Iterator[str]:
    """Lines of a file as they are written, without line ends; stops when the file is read and `ended()`.

    Args:
        path: the path of the file, which may appear later.
        ended: whether no process writes any longer.
    """
    rest = b""
    offset = 0
    while True:
        last = ended()  # asked first, so that everything written before the end is read
        if path.exists():
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read()
            offset += len(data)
            *lines, rest = (rest + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
        if last:
            if rest:
                yield rest.decode(errors="replace")
            return
        time.sleep(_POLL_SECS)
