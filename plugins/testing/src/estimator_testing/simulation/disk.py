"""The named objects that the processes of a simulation share, and their complete history."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from estimator_core.storage import Entry, ObjectExistsError, ObjectMissingError, StorageGoneError

URL = "virtual://model_dir"
#: The number of changes that a stale list does not show yet.
_STALE = 10


class Change(NamedTuple):
    """A change of an object.

    Attributes:
        time: the time by the clock of the storage.
        process: the process that made it.
        life: the number of the life of the process, from 0.
        call: the name of the call: put_new, put, put_stream, delete, or removed for the whole root.
        key: the key of the object.
        data: the new content, or None for a removed object.
    """

    time: float
    process: str
    life: int
    call: str
    key: str
    data: bytes | None


class Note(NamedTuple):
    """An action or an observation that a process reports.

    Attributes:
        time: the time by the clock of the storage.
        process: the process that reports it.
        life: the number of the life of the process.
        what: the name of the event.
        about: the data of the event.
    """

    time: float
    process: str
    life: int
    what: str
    about: object


#: A change that a simulated run makes on its disk, or a note of the run.
Event: TypeAlias = Change | Note


class Disk:
    """The objects, the clock that stamps them, and the events so far.

    Args:
        durable: the calls that survive a loss of power.
    """

    def __init__(self, durable: frozenset[str]) -> None:
        self.clock = 1_000_000.0
        self.events: list[Event] = []
        self.gone = False
        self._durable = durable
        self._objects: dict[str, tuple[bytes, float]] = {}
        self._flushed: dict[str, tuple[bytes, float] | None] = {}  # the contents that a loss of power may restore

    def write(self, who: tuple[str, int], call: str, key: str, data: bytes) -> None:
        """Executes put_new, put or put_stream."""
        self._require_root()
        if call == "put_new" and key in self._objects:
            raise ObjectExistsError(f"{URL}: {key} exists already.")
        self._change(who, call, key, data)

    def delete(self, who: tuple[str, int], key: str) -> None:
        """Removes an object."""
        self._require_root()
        if key in self._objects:
            self._change(who, "delete", key, None)

    def read(self, key: str) -> bytes:
        """Returns the bytes of an object."""
        self._require_root()
        if key not in self._objects:
            raise ObjectMissingError(f"{URL}: there is no {key}.")
        return self._objects[key][0]

    def holds(self, key: str) -> bool:
        """Returns whether an object exists."""
        return key in self._objects

    def list(self, prefix: str, *, stale: bool = False) -> Iterator[Entry]:
        """Yields the objects below a prefix. If `stale`, as they were some changes ago."""
        self._require_root()
        begin = f"{prefix}/" if prefix else ""
        objects = self._older() if stale else self._objects
        found = sorted(key for key in objects if key.startswith(begin))
        return iter([Entry(key=key, size=len(objects[key][0]), modified=objects[key][1]) for key in found])

    def remove_root(self, who: tuple[str, int]) -> None:
        """Removes everything. No call succeeds until `make_root`."""
        self._objects.clear()
        self._flushed.clear()
        self.events.append(Change(self.clock, *who, "removed", "", None))
        self.gone = True

    def make_root(self) -> None:
        """Creates an empty root after one was removed."""
        self.gone = False

    def lose_power(self, chance: random.Random) -> None:
        """Loses some of the changes that are not durable, at random and in any order."""
        for key, before in self._flushed.items():
            if chance.random() < 0.5:
                data = None if before is None else before[0]
                self.events.append(Change(self.clock, "loss of power", 0, "power", key, data))
                if before is None:
                    self._objects.pop(key, None)
                else:
                    self._objects[key] = before
        self._flushed.clear()

    def _change(self, who: tuple[str, int], call: str, key: str, data: bytes | None) -> None:
        if call in self._durable:
            self._flushed.pop(key, None)
        else:
            self._flushed.setdefault(key, self._objects.get(key))
        if data is None:
            del self._objects[key]
        else:
            self._objects[key] = (data, self.clock)
        self.events.append(Change(self.clock, *who, call, key, data))

    def _older(self) -> dict[str, tuple[bytes, float]]:
        """Returns the objects as they were some changes ago."""
        objects: dict[str, tuple[bytes, float]] = {}
        for event in [event for event in self.events if isinstance(event, Change)][:-_STALE]:
            if event.data is not None:
                objects[event.key] = (event.data, event.time)
            elif event.key:
                objects.pop(event.key, None)
            else:
                objects.clear()
        return objects

    def _require_root(self) -> None:
        if self.gone:
            raise StorageGoneError(f"{URL} does not exist: the directory was removed, renamed or unmounted.")
