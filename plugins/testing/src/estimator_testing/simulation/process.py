"""One process of a simulation, as its program sees it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from estimator_core.storage import StorageDeniedError
from estimator_testing.simulation.disk import Disk, Note
from estimator_testing.simulation.faults import Fault
from estimator_testing.simulation.storage import VirtualStorage

_Answer = TypeVar("_Answer")


class ProcessKilledError(BaseException):
    """The process is killed. This is not an Exception, because its code must not continue."""


class World(Protocol):
    """The part of the simulation that a process needs."""

    disk: Disk

    def call(self, process: Process, call: str, key: str, perform: Callable[[bool], _Answer]) -> _Answer:
        """Executes a call of the process, with the faults that are due."""
        ...

    def sleep(self, process: Process, seconds: float) -> None:
        """Lets other processes run for this time."""
        ...


class Process:
    """A process of a scenario.

    Attributes:
        name: the name in the scenario.
        life: the number of restarts so far.
        chance: the random generator of the process. Only its numbers are the same in a replay.
        storage: the virtual storage, with the same objects for all processes.
    """

    def __init__(self, world: World, name: str, faults: Sequence[Fault]) -> None:
        self.name = name
        self.life = 0
        self.chance = random.Random(name)
        self.calls = 0
        self.killed = False
        self.ended = False
        self.set_back = 0.0
        self.faults: dict[int, list[Fault]] = {}
        for fault in faults:
            self.faults.setdefault(fault.call, []).append(fault)
        self.baton = threading.Lock()
        self.baton.acquire()
        self._world = world
        self.storage = self._opened()

    def start_again(self) -> None:
        """Begins the next life, with nothing of the previous one in memory."""
        self.life += 1
        self.killed = False
        self.storage = self._opened()

    def note(self, what: str, about: object = None) -> None:
        """Adds an event of the program to the record that `Scenario.check` reads."""
        self._world.disk.events.append(Note(self._world.disk.clock, self.name, self.life, what, about))

    def time(self) -> float:
        """Returns the time of its machine."""
        return self._world.disk.clock - self.set_back

    def monotonic(self) -> float:
        """Returns a time that is never set back."""
        return self._world.disk.clock

    def sleep(self, seconds: float) -> None:
        """Lets other processes run for this time."""
        self._world.sleep(self, seconds)

    def _opened(self) -> VirtualStorage:
        process, life = self, self.life

        def carry(call: str, key: str, perform: Callable[[bool], _Answer]) -> _Answer:
            if process.life != life:
                raise StorageDeniedError("A storage of an earlier life of the process is used: open a new one.")
            return self._world.call(process, call, key, perform)

        return VirtualStorage(self._world.disk, (self.name, life), carry)
