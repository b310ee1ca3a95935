"""Runs many schedules: every fault, every pair, or a number drawn from a seed. Reduces a failing schedule."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from estimator_testing.simulation.faults import KINDS, WITHIN_CONTRACT, Fault
from estimator_testing.simulation.simulate import Outcome, Scenario, simulate

#: The largest number of points at the start of a random schedule at which a process lets the others run.
_TURNS = 12
#: The number of first faults, and of second faults for each of them, that are tried before turns are drawn again.
_BRANCHES = 8


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of an exploration.

    Args:
        schedules: the number of schedules with the requested number of faults.
        kinds: the kinds of faults that took part.
        seconds: the duration in seconds.
        seed: the seed of the schedules, or None for a systematic exploration.
        failure: the first schedule with a violation, made as small as possible, or None.
    """

    schedules: int
    kinds: tuple[str, ...]
    seconds: float
    seed: int | None
    failure: Outcome | None

    def __str__(self) -> str:
        drawn = "systematic" if self.seed is None else f"seed {self.seed}"
        rate = self.schedules / max(self.seconds, 1e-9)
        head = f"{self.schedules} schedules ({drawn}) in {self.seconds:.1f} s, {rate:.0f} a second"
        return f"{head}: no violation" if self.failure is None else f"{head}: VIOLATION\n{self.failure}"


def explore(
    scenario: Scenario,
    *,
    faults: int = 2,
    schedules: int | None = None,
    seed: int | None = None,
    kinds: Sequence[str] = WITHIN_CONTRACT,
) -> Report:
    """Runs schedules of a scenario until one has a violation.

    A second fault comes after the first one, in the calls that follow from it, so that it affects the recovery.

    Args:
        scenario: the processes, and the check of the result.
        faults: the number of faults of a schedule.
        schedules: the largest number to run. None: all (systematic), which suits small scenarios.
        seed: the seed of random schedules and of the turns of processes. None: in order, from the first.
        kinds: the kinds of faults.

    Raises:
        ValueError: a seed was passed without a number of schedules.

    Example:
        >>> def count(process):
        ...     number = len(list(process.storage.list("")))
        ...     process.storage.put(f"{number}", b"")
        >>> def check(evidence):
        ...     if len(list(evidence.storage.list(""))) != 2:
        ...         yield "two processes have counted, and there are not two objects"
        >>> report = explore(Scenario(programs={"one": count, "two": count}, check=check), faults=1)
        >>> print(report.failure)
        simulate(scenario, [Fault(kind='answer_lost', process='one', call=2)])
          two processes have counted, and there are not two objects
    """
    if seed is not None and schedules is None:
        raise ValueError("schedules from a seed are endless: give their number")
    started = time.perf_counter()
    count = 0
    failure: Outcome | None = None
    drawn = _systematic(scenario, faults, kinds) if seed is None else _drawn(scenario, faults, kinds, seed)
    for outcome, whole in drawn:
        count += whole
        if outcome.violations:
            failure = shrink(scenario, outcome)
            break
        if count == schedules:
            break
    seconds = time.perf_counter() - started
    return Report(schedules=count, kinds=tuple(kinds), seconds=seconds, seed=seed, failure=failure)


def shrink(scenario: Scenario, failure: Outcome) -> Outcome:
    """Removes the faults that a failing schedule does not need.

    Args:
        scenario: the scenario of the schedule.
        failure: an outcome with violations.
    """
    smaller = True
    while smaller:
        smaller = False
        for left_out in failure.faults:
            fewer = tuple(fault for fault in failure.faults if fault is not left_out)
            outcome = simulate(scenario, fewer)
            if outcome.violations:
                failure, smaller = outcome, True
                break
    return failure


def _systematic(scenario: Scenario, faults: int, kinds: Sequence[str]) -> Iterator[tuple[Outcome, bool]]:
    """Yields every schedule, and whether it has all its faults. Schedules with fewer faults come in between."""
    yield from _deeper(scenario, simulate(scenario), kinds, depth=0, faults=faults, choose=lambda possible: possible)


def _drawn(scenario: Scenario, faults: int, kinds: Sequence[str], seed: int) -> Iterator[tuple[Outcome, bool]]:
    """Yields random schedules without end."""
    chance = random.Random(seed)
    plain = simulate(scenario)

    def some(possible: Sequence[Fault]) -> Sequence[Fault]:
        return chance.sample(possible, k=min(_BRANCHES, len(possible)))

    while True:
        way = simulate(scenario, _turns(plain, chance))
        yield from _deeper(scenario, way, kinds, depth=0, faults=faults, choose=some)


def _deeper(
    scenario: Scenario,
    outcome: Outcome,
    kinds: Sequence[str],
    *,
    depth: int,
    faults: int,
    choose: Callable[[Sequence[Fault]], Sequence[Fault]],
) -> Iterator[tuple[Outcome, bool]]:
    """Yields a schedule, and those with one more fault after its last one."""
    yield outcome, depth == faults
    if depth == faults or outcome.violations:
        return
    for fault in choose(_possible(outcome, kinds, outcome.faults[-1] if depth else None)):
        more = simulate(scenario, [*outcome.faults, fault])
        yield from _deeper(scenario, more, kinds, depth=depth + 1, faults=faults, choose=choose)


def _possible(outcome: Outcome, kinds: Sequence[str], last: Fault | None) -> list[Fault]:
    """Returns every fault that can happen in a schedule after its last one."""
    where = [(call.process, call.number) for call in outcome.calls]
    begin = 0 if last is None else where.index((last.process, last.call)) + 1
    return [
        Fault(kind, call.process, call.number)
        for call in outcome.calls[begin:]
        for kind in kinds
        if call.call in KINDS[kind][1]
    ]


def _turns(plain: Outcome, chance: random.Random) -> tuple[Fault, ...]:
    """Returns points at which processes let the others run, so that their calls mix."""
    points = chance.sample(plain.calls, k=min(chance.randint(0, _TURNS), len(plain.calls)))
    return tuple(Fault("turn", point.process, point.number) for point in points)
