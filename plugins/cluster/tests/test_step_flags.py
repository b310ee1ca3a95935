"""Tests of the flags of batches: batches of the same form are recognised by them, and everything else is gathered."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import jax
import pytest

from estimator_cluster.shared_feed import Range, agreed_batches, step_flags

TOLD: dict[str, Any] = {
    "rows": 8,
    "size": 8,
    "total": None,
    "form": "['x'] float32[4]",
    "flags": {"stop": None, "due": []},
}


class Gathering:
    """A coordinator of two processes. The other one returns the values passed here."""

    index, count = 0, 2

    def __init__(self, other: dict[str, Any]) -> None:
        self.other, self.topics = other, list[str]()

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        self.topics.append(topic)
        return [value, json.dumps(self.other)]


def reduced_with(other: dict[str, Any]) -> Callable[[Sequence[int]], Callable[[], Range]]:
    """Returns the flags of two processes, of which the other reports a different batch."""
    given: list[Sequence[int]] = []
    alone = step_flags(jax.make_mesh((1,), ("data",)))

    def keep(numbers: Sequence[int]) -> Callable[[], Range]:
        given.append(numbers)
        return lambda: Range(low=(0,), high=(0,))

    agreed_batches(keep, Gathering(other), "other")(other)  # type: ignore[arg-type]

    def flags(numbers: Sequence[int]) -> Callable[[], Range]:
        both = [alone(numbers)(), alone(given[0])()]
        return lambda: Range(
            low=tuple(map(min, *(one.low for one in both))), high=tuple(map(max, *(one.high for one in both)))
        )

    return flags


def told_by(own: dict[str, Any], other: dict[str, Any]) -> tuple[Any, list[str]]:
    processes = Gathering(other)
    wait = agreed_batches(reduced_with(other), processes, "batches")(own)  # type: ignore[arg-type]
    return wait(), processes.topics


def test_nothing_is_gathered_of_batches_that_are_alike() -> None:
    assert told_by(TOLD, dict(TOLD)) == ([TOLD, TOLD], [])
    ended = {**TOLD, "rows": None, "size": 0}
    assert told_by(ended, dict(ended)) == ([ended, ended], [])


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 5},
        {"rows": None, "size": 0},
        {"size": 5},
        {"total": 32},
        {"form": "['x'] float32[5]"},
        {"flags": {"stop": "SIGTERM in process 1", "due": []}},
        {"flags": {"stop": None, "due": [0]}},
    ],
)
def test_what_differs_or_is_wanted_is_gathered(change: dict[str, Any]) -> None:
    other = {**TOLD, **change}
    assert told_by(TOLD, other) == ([TOLD, other], ["batches"])


def test_what_both_want_is_gathered() -> None:
    wanted = {**TOLD, "flags": {"stop": "SIGTERM", "due": []}}
    assert told_by(wanted, wanted) == ([wanted, wanted], ["batches"])


def test_the_smallest_and_the_largest_are_known() -> None:
    flags = step_flags(jax.make_mesh((1,), ("data",)))
    assert flags([3, -1, 2**31 - 1])() == Range(low=(3, -1, 2**31 - 1, 0), high=(3, -1, 2**31 - 1, 0))
