"""Runs the processes of a scenario one at a time: at each call of a storage, faults happen and the turn may pass on."""

from __future__ import annotations

import contextlib
import errno
import heapq
import itertools
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from estimator_core.errors import SupersededError
from estimator_core.storage import (
    ObjectExistsError,
    OutcomeUnknownError,
    Storage,
    StorageError,
    StorageFullError,
    StorageGoneError,
)
from estimator_testing.simulation.clock import acting_as
from estimator_testing.simulation.disk import URL, Disk
from estimator_testing.simulation.faults import FROZEN, FROZEN_LONG, LATE, THROTTLED, Fault
from estimator_testing.simulation.process import Process, ProcessKilledError
from estimator_testing.simulation.storage import VirtualStorage
from estimator_testing.simulation.workers import in_thread

_Answer = TypeVar("_Answer")
Main = Callable[[Process], None]
#: The duration of a call, in seconds.
_TICK = 0.01
#: The number of calls after which a process counts as endless.
_MOST_CALLS = 20_000


class Call(NamedTuple):
    """A call of a process to a storage, at which a fault can happen."""

    process: str
    number: int
    call: str
    key: str


class End(NamedTuple):
    """The end of a life of a process. `error` is None if its program ended normally."""

    process: str
    life: int
    error: BaseException | None


class World:
    """The processes of a scenario and their shared state.

    Args:
        mains: the programs of the processes by name, in the order of their first turns.
        faults: the faults.
        lives: the largest number of starts of a process, if it is killed or a storage fails.
        stranger: the function that begins another model_dir after the fault `replaced` has removed one.
        durable: the calls that survive a loss of power.
    """

    def __init__(
        self,
        mains: Mapping[str, Main],
        faults: Iterable[Fault],
        *,
        lives: int,
        stranger: Callable[[Storage], None],
        durable: frozenset[str],
    ) -> None:
        self.disk = Disk(durable)
        self.calls: list[Call] = []
        self.ends: list[End] = []
        ordered = tuple(faults)
        self._mains = mains
        self._lives = lives
        self._stranger = stranger
        self._faults = ordered
        self._processes = [Process(self, name, [one for one in ordered if one.process == name]) for name in mains]
        self._ready = deque(self._processes)
        self._asleep: list[tuple[float, int, Process]] = []
        self._order = itertools.count()
        self._late: list[tuple[int, Callable[[bool], object]]] = []
        self._idle = threading.Lock()

    def run(self) -> None:
        """Runs all processes to their ends, and then executes the pending requests."""
        self._idle.acquire()
        for process in self._processes:
            in_thread(lambda process=process: self._live(process))
        self._pass_on()
        self._idle.acquire()
        self._deliver(everything=True)

    def call(self, process: Process, call: str, key: str, perform: Callable[[bool], _Answer]) -> _Answer:
        """Executes a call of a process, with the faults that are due."""
        self._stop_if_killed(process)
        process.calls += 1
        self.calls.append(Call(process.name, process.calls, call, key))
        self.disk.clock += _TICK
        if self._late:
            self._deliver()
        if process.calls > _MOST_CALLS:
            raise RuntimeError(f"{process.name} has made {_MOST_CALLS} calls to its storage, but does not end")
        faults = process.faults.get(process.calls)
        if faults is None:
            return perform(False)
        for fault in faults[:-1]:
            self._happen(process, fault, call, lambda stale: None)
        return self._happen(process, faults[-1], call, perform)

    def sleep(self, process: Process, seconds: float) -> None:
        """Lets other processes run for this time."""
        self._stop_if_killed(process)
        heapq.heappush(self._asleep, (self.disk.clock + seconds, next(self._order), process))
        self._give_turn(process)

    def outside(self) -> VirtualStorage:
        """Returns the storage without faults, for readers outside the simulation."""
        return VirtualStorage(self.disk, ("outside", 0), lambda call, key, perform: perform(False))

    def _happen(self, process: Process, fault: Fault, call: str, perform: Callable[[bool], _Answer]) -> _Answer:
        """Applies a fault, and executes the call if it still takes place."""
        match kind := fault.kind:
            case "answer_lost":
                perform(False)
                raise _lost(call)
            case "request_lost":
                raise _lost(call)
            case "request_late" | "request_last":
                self._delay(perform, last=kind == "request_last")
                raise _lost(call)
            case "doubled" | "doubled_last":
                self._delay(perform, last=kind == "doubled_last")
            case "io_error":
                raise StorageError(f"{URL}: Input/output error (simulated).") from OSError(errno.EIO, "EIO")
            case "full":
                raise StorageFullError(f"{URL}: No space left on device (simulated).")
            case "throttled":
                self.disk.clock += THROTTLED
            case "kill_before":
                self._kill(process)
            case "kill_after":
                with contextlib.suppress(StorageError):
                    perform(False)
                self._kill(process)
            case "power_before":
                self._lose_power(process, fault)
            case "power_after":
                with contextlib.suppress(StorageError):
                    perform(False)
                self._lose_power(process, fault)
            case "freeze" | "freeze_long":
                self.sleep(process, FROZEN_LONG if kind == "freeze_long" else FROZEN)
            case "turn":
                self._ready.append(process)
                self._give_turn(process)
            case "clock_back":
                process.set_back += 3600.0
            case "removed" | "replaced":
                self._late.clear()
                self.disk.remove_root((process.name, process.life))
                if kind == "replaced":
                    self.disk.make_root()
                    self._stranger(self.outside())
            case "stale_list":
                return perform(True)
            case _:
                raise ValueError(f"{kind!r} is not a kind of fault")
        return perform(False)

    def _delay(self, perform: Callable[[bool], object], *, last: bool) -> None:
        self._late.append((_MOST_CALLS * len(self._processes) if last else len(self.calls) + LATE, perform))

    def _deliver(self, *, everything: bool = False) -> None:
        """Executes the requests that have been pending for long enough."""
        due = [perform for time, perform in self._late if everything or time <= len(self.calls)]
        self._late = [late for late in self._late if not (everything or late[0] <= len(self.calls))]
        for perform in due:
            with contextlib.suppress(ObjectExistsError, StorageGoneError):
                perform(False)

    def _kill(self, process: Process) -> None:
        process.killed = True
        self._stop_if_killed(process)

    def _lose_power(self, process: Process, fault: Fault) -> None:
        # What is lost does not depend on later faults, so a schedule with one more fault is the same up to that fault.
        until = self._faults.index(fault) + 1
        self.disk.lose_power(random.Random(repr(self._faults[:until])))
        self._late.clear()
        for other in self._processes:
            other.killed = not other.ended
        self._ready.extend(other for _, _, other in sorted(self._asleep, key=lambda one: one[:2]))
        self._asleep.clear()
        self._stop_if_killed(process)

    def _stop_if_killed(self, process: Process) -> None:
        if process.killed:
            raise ProcessKilledError(f"{process.name} is killed")

    # ---- Turns: one thread runs at a time, the one whose baton was released last ----------------------------------

    def _live(self, process: Process) -> None:
        """Runs all lives of a process, in its thread."""
        process.baton.acquire()
        with acting_as(process):
            while self._one_life(process) and process.life + 1 < self._lives:
                process.start_again()
                self._ready.append(process)
                self._switch(process)
        process.ended = True
        self._pass_on()

    def _one_life(self, process: Process) -> bool:
        """Runs one life. Returns whether the process may be restarted."""
        error: BaseException | None = None
        try:
            process.note("begins")
            self._stop_if_killed(process)  # power was lost before its first call
            self._mains[process.name](process)
        except BaseException as raised:  # the check examines every error
            error = raised
        if expected(error) and error is not None:
            error.__traceback__ = None  # it is not used, and holds all objects of that life
        self.ends.append(End(process.name, process.life, error))
        return isinstance(error, ProcessKilledError | StorageError) and not isinstance(error, StorageGoneError)

    def _give_turn(self, process: Process) -> None:
        self._switch(process)
        self._stop_if_killed(process)

    def _switch(self, process: Process) -> None:
        other = self._next()
        if other is not process and other is not None:
            other.baton.release()
            process.baton.acquire()

    def _pass_on(self) -> None:
        other = self._next()
        (self._idle if other is None else other.baton).release()

    def _next(self) -> Process | None:
        while self._asleep and (not self._ready or self._asleep[0][0] <= self.disk.clock):
            wakes, _, process = heapq.heappop(self._asleep)
            self.disk.clock = max(self.disk.clock, wakes)
            self._ready.append(process)
        return self._ready.popleft() if self._ready else None


def expected(error: BaseException | None) -> bool:
    """Returns whether a program may end with this error when its storage fails."""
    return error is None or isinstance(error, ProcessKilledError | StorageError | SupersededError)


def _lost(call: str) -> StorageError:
    """Returns the error that a caller sees when the answer of a call is lost."""
    kind = OutcomeUnknownError if call == "put_new" else StorageError
    return kind(f"{URL}: the answer to {call} was lost (simulated).")
