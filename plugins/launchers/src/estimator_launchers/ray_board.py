"""The state that the processes of a Ray job share: how they ended, what they write, and which of them must stop.

It is plain Python. The driver makes it an actor of Ray.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from estimator_launchers.outcome import RESUMABLE, can_go_on, in_words, outcome

#: The order for a process: continue, save and end, or be killed.
Order = Literal["go on", "stop", "kill"]


class Board:
    """Tracks one attempt at a time. Ray starts the processes of each attempt.

    Args:
        secret: the secret of the run.
        evaluator: the number of the evaluator, which belongs to every attempt.
        grace_secs: the seconds between the first failure, or the request to stop, and the forced end.
        max_restarts: the number of restarts of the evaluator. Ray Train counts the attempts.
        clock: the function that returns the time in seconds.

    Example:
        >>> board = Board("secret", evaluator=2, grace_secs=60.0)
        >>> attempt = board.begin(count=2)
        >>> board.ended(attempt, 1, 75), board.verdict(attempt)
        (None, None)
        >>> board.ended(attempt, 0, 75), board.verdict(attempt)
        (None, 75)
    """

    def __init__(
        self,
        secret: str,
        *,
        evaluator: int,
        grace_secs: float,
        max_restarts: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._secret, self._evaluator, self._grace_secs, self._clock = secret, evaluator, grace_secs, clock
        self._max_restarts, self._evaluator_restarts, self._evaluator_failed = max_restarts, 0, False
        self._attempt = -1
        self._count = 0
        self._hosts: dict[int, str] = {}
        self._ended: dict[int, int] = {}
        self._evaluated: int | None = None
        self._stopping = self._closing = False
        self._kill_at: float | None = None
        self._lines: list[tuple[int, str]] = []
        self._events: list[str] = []
        self._lost_at: float | None = None

    def secret(self) -> str:
        """Returns the secret of the run."""
        return self._secret

    def begin(self, count: int) -> int:
        """Begins the next attempt with `count` processes. Returns its number, from 0."""
        self._attempt += 1
        self._count, self._ended, self._hosts = count, {}, {}
        if not self._stopping:
            self._kill_at = None
        if self._attempt:
            passed = "" if self._lost_at is None else f", {self._clock() - self._lost_at:.1f} s after the loss"
            self._events.append(f"starting again, {count} together (attempt {self._attempt + 1}){passed}")
        self._lost_at = None
        return self._attempt

    def placed(self, attempt: int, index: int, host: str) -> None:
        """Records on which host a process runs."""
        if attempt == self._attempt:
            self._hosts[index] = host

    def ended(self, attempt: int, index: int, status: int) -> None:
        """Records how a process has ended."""
        if index == self._evaluator:
            self._evaluated = status
            if status and not (self._stopping or self._closing):
                self._events.append(f"the evaluator has ended: {in_words(status)}")
                if not can_go_on(status):
                    self._evaluator_failed = True
                    self.stop()
        elif attempt == self._attempt:
            self._ended[index] = status
            if status and self._kill_at is None:
                self._events.append(f"{self._named(index)} has ended: {in_words(status)}")
                self._kill_at = self._clock() + self._grace_secs
            if status and self._lost_at is None:
                self._lost_at = self._clock()

    def lost(self, index: int, why: str) -> None:
        """Records that Ray has lost the worker of a process."""
        self._events.append(f"{self._named(index)} is lost: {why}")
        if self._lost_at is None:
            self._lost_at = self._clock()

    def _named(self, index: int) -> str:
        return f"process {index} on {self._hosts[index]}" if index in self._hosts else f"process {index}"

    def stop(self) -> None:
        """Requests that all processes save and end."""
        if not self._stopping:
            self._stopping, self._kill_at = True, self._clock() + self._grace_secs

    def close(self) -> None:
        """Requests that the evaluator ends, because training has failed."""
        if not self._closing:
            self._closing, self._kill_at = True, self._clock() + self._grace_secs

    def evaluator_again(self) -> bool:
        """Returns whether the ended evaluator restarts: it was lost, and a restart is left."""
        lost = self._evaluated is not None and self._evaluated != 0 and can_go_on(self._evaluated)
        if not lost or self._stopping or self._closing:
            return False
        if self._evaluator_restarts >= self._max_restarts:
            self._events.append(
                f"the evaluator does not start again: --max-restarts {self._max_restarts} allows no more. The job "
                "returns 75 when training has ended."
            )
            return False
        self._evaluator_restarts += 1
        self._events.append(f"starting the evaluator again ({self._evaluator_restarts} of {self._max_restarts})")
        return True

    def evaluator_failed(self) -> bool:
        """Returns whether the evaluator has failed by itself, which ends the job."""
        return self._evaluator_failed

    def order(self, attempt: int, index: int) -> Order:
        """Returns the order for a process."""
        asked = self._stopping or (self._closing and index == self._evaluator)
        if index != self._evaluator and attempt != self._attempt:
            return "kill"  # it belongs to an attempt that Ray has abandoned
        if self._kill_at is not None and self._clock() > self._kill_at and (index != self._evaluator or asked):
            return "kill"
        return "stop" if asked else "go on"

    def verdict(self, attempt: int) -> int | None:
        """Returns 0, 75, or the status of a process that failed by itself. None while processes run."""
        if attempt != self._attempt:
            return RESUMABLE
        return outcome(list(self._ended.values())) if len(self._ended) == self._count else None

    def may_go_on(self) -> bool:
        """Returns whether another attempt may follow an end from which the run can continue."""
        return not self._stopping

    def why(self) -> str:
        """Returns how the processes ended, in words.

        Includes the evaluator if it failed by itself, or if no other process ended badly.
        """
        told = [f"process {index}: {in_words(status)}" for index, status in self._ended.items() if status]
        if self._evaluated and (self._evaluator_failed or not told):
            told = [f"the evaluator: {in_words(self._evaluated)}", *told]
        return "; ".join(told)

    def attempts(self) -> int:
        """Returns the number of attempts that have begun."""
        return self._attempt + 1

    def write(self, index: int, lines: list[str]) -> None:
        """Adds lines that a process has written."""
        self._lines.extend((index, line) for line in lines)

    def taken(self) -> tuple[list[tuple[int, str]], list[str]]:
        """Returns the lines of the processes and the events since the last call."""
        lines, events = self._lines, self._events
        self._lines, self._events = [], []
        return lines, events
