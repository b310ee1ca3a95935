"""Runs one schedule: the processes of a scenario together, with faults, and then a check of the result."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from estimator_core.errors import EstimatorError
from estimator_core.storage import Storage
from estimator_testing.simulation.clock import acting_as, virtual_time
from estimator_testing.simulation.disk import Disk, Event
from estimator_testing.simulation.faults import Fault
from estimator_testing.simulation.process import Process
from estimator_testing.simulation.world import Call, End, World, expected

#: The calls that are durable when they return, by the contract of a storage.
DURABLE = frozenset({"put_new", "put", "put_stream"})


class Evidence:
    """The result of a schedule, for `Scenario.check`.

    Attributes:
        storage: the storage as a reader sees it, without further faults.
        events: every change and every note of a process, in order.
        ends: the end of each life of each process.
    """

    def __init__(self, disk: Disk, storage: Storage, ends: Sequence[End]) -> None:
        self.storage = storage
        self.events: tuple[Event, ...] = tuple(disk.events)
        self.ends = tuple(ends)
        self._disk = disk

    @property
    def removed(self) -> bool:
        """Whether the root was removed."""
        return self._disk.gone

    def pass_time(self, seconds: float) -> None:
        """Advances the clock of the storage, so that leases expire."""
        self._disk.clock += seconds


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Processes that use one storage, and the condition that must hold whatever happens to them.

    A program gets its `Process` and uses `process.storage` for all data that must survive it, because a killed process
    is restarted with nothing in memory. Programs run in separate threads, one at a time, and start no threads.
    `time.time`, `time.sleep` and `uuid.uuid4` are virtual there.

    Args:
        programs: the programs by name of the process, in the order of their first turns.
        check: the function that returns a sentence for each violation. It is called after all processes have ended.
        lives: the largest number of starts of a process. It restarts after a kill or a failure of the storage.
        stranger: the function that begins another model_dir after the fault `replaced` has removed everything.
        durable: the calls of the storage that survive a loss of power. Default: those of the contract.
    """

    programs: Mapping[str, Callable[[Process], None]]
    check: Callable[[Evidence], Iterable[str]]
    lives: int = 3
    stranger: Callable[[Storage], None] = lambda storage: None
    durable: frozenset[str] = DURABLE


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a schedule.

    Args:
        faults: the faults of the schedule.
        violations: the violations that the check found. Empty for a good outcome.
        calls: every call of every process to its storage, in order.
        events: the changes by these calls, and the notes of the processes.
    """

    faults: tuple[Fault, ...]
    violations: tuple[str, ...]
    calls: tuple[Call, ...]
    events: tuple[Event, ...]

    def __str__(self) -> str:
        lines = [f"simulate(scenario, {list(self.faults)!r})", *(f"  {one}" for one in self.violations)]
        return "\n".join(lines if self.violations else [*lines, "  nothing is wrong"])


def simulate(scenario: Scenario, faults: Iterable[Fault] = ()) -> Outcome:
    """Runs a scenario once. The same faults lead to the same outcome, byte for byte.

    Args:
        scenario: the processes, and the check of the result.
        faults: the faults. A fault at a call that does not take place has no effect.

    Raises:
        ValueError: a fault has an unknown kind, or names a process that the scenario does not have.

    Example:
        >>> def count(process):
        ...     process.storage.put("count", b"1")
        ...     process.storage.put("count", b"2")
        >>> def check(evidence):
        ...     if evidence.storage.get("count") != b"2":
        ...         yield "the count is wrong"
        >>> scenario = Scenario(programs={"one": count}, check=check)
        >>> simulate(scenario, [Fault("kill_before", "one", 2)]).violations  # it is started again
        ()
        >>> print(simulate(scenario, [Fault("request_last", "one", 1)]))
        simulate(scenario, [Fault(kind='request_last', process='one', call=1)])
          the count is wrong
    """
    chosen = tuple(faults)
    if strange := [one for one in chosen if one.process not in scenario.programs]:
        raise ValueError(f"{strange[0]} is of a process that is not among {', '.join(scenario.programs)}")
    world = World(
        scenario.programs,
        chosen,
        lives=scenario.lives,
        stranger=scenario.stranger,
        durable=scenario.durable,
    )
    with virtual_time():
        world.run()
        events = tuple(world.disk.events)
        violations = tuple(_judged(scenario, world))
    return Outcome(faults=chosen, violations=violations, calls=tuple(world.calls), events=events)


def _judged(scenario: Scenario, world: World) -> list[str]:
    found = [_told(end) for end in world.ends if not expected(end.error)]
    evidence = Evidence(world.disk, world.outside(), world.ends)
    with acting_as(_Outside(world.disk)):
        try:
            return [*found, *scenario.check(evidence)]
        except (EstimatorError, OSError) as error:
            return [*found, f"The check cannot read what is left: {type(error).__name__}: {error}"]


def _told(end: End) -> str:
    last = traceback.extract_tb(end.error.__traceback__)[-1] if end.error else None
    where = f" ({last.filename.rpartition('/')[2]}:{last.lineno})" if last else ""
    return f"{end.process}, life {end.life}, ended with {type(end.error).__name__}: {end.error}{where}"


class _Outside:
    """The caller of the check. Its clock is that of the storage."""

    def __init__(self, disk: Disk) -> None:
        self.chance = random.Random("outside")
        self._disk = disk

    def time(self) -> float:
        """Returns the time of the storage."""
        return self._disk.clock

    def monotonic(self) -> float:
        """Returns the time of the storage."""
        return self._disk.clock

    def sleep(self, seconds: float) -> None:
        """Does nothing, because no other process can run."""
        self._disk.clock += seconds
