"""Follows growing files, and caches the answers of an engine to limit the number of requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from estimator_launchers.errors import LaunchError

_POLL_SECS = 0.1
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, kw_only=True)
class _Kept(Generic[_Answer]):
    answer: _Answer
    answered: float
    asked: float


class Kept(Generic[_Answer]):
    """Caches answers about jobs, so that the threads that follow a job share one request to its engine.

    Args:
        ask: the function that requests the answer about a job.
        secs: the seconds for which an answer is kept.
        patience_secs: the seconds for which the last answer counts if the engine does not answer.

    Example:
        >>> asked = []
        >>> kept = Kept(lambda job: asked.append(job) or len(asked), secs=60.0)
        >>> kept.of("a"), kept.of("a"), kept.of("b")
        (1, 1, 2)
    """

    def __init__(self, ask: Callable[[str], _Answer], secs: float, *, patience_secs: float = 0.0) -> None:
        self._ask, self._secs, self._patience_secs = ask, secs, patience_secs
        self._lock = threading.Lock()
        self._answers: dict[str, _Kept[_Answer]] = {}

    def of(self, job_id: str) -> _Answer:
        """Returns the answer about a job, at most `secs` seconds old if the engine answers.

        Raises:
            LaunchError: the engine does not answer, and the last answer is too old.
        """
        with self._lock:
            kept = self._answers.get(job_id)
            if kept is None or time.monotonic() - kept.asked > self._secs:
                kept = self._answers[job_id] = self._again(job_id, kept)
            return kept.answer

    def _again(self, job_id: str, kept: _Kept[_Answer] | None) -> _Kept[_Answer]:
        try:
            answer = self._ask(job_id)
        except LaunchError:
            if kept is None or time.monotonic() - kept.answered > self._patience_secs:
                raise
            return _Kept(answer=kept.answer, answered=kept.answered, asked=time.monotonic())
        now = time.monotonic()
        return _Kept(answer=answer, answered=now, asked=now)

    def forget(self, job_id: str) -> None:
        """Discards the answer about a job, because the job was changed."""
        with self._lock:
            self._answers.pop(job_id, None)


def follow_file(path: Path, ended: Callable[[], bool]) -> Iterator[str]:
    """Yields the lines of a file as they are written, without line ends. Stops at the end of the file if `ended()`.

    Args:
        path: the path of the file, which may appear later.
        ended: a function that returns whether all writers have ended.
    """
    rest = b""
    offset = 0
    while True:
        last = ended()  # called first, so that everything written before the end is read
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
