"""The `Coordinator` of several processes, over a store that all of them see."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

from estimator_cluster.liveness import Watch
from estimator_cluster.store import SealedStore, StoreGoneError
from estimator_core.coordinator import Lost
from estimator_core.errors import ProcessLostError

_Answer = TypeVar("_Answer")
_log = logging.getLogger("estimator_cluster")
#: The seconds after which the log says for whom this process waits.
_SAY_SECS = 30.0
#: The first and the longest pause between two polls for a value, in seconds. The pauses grow, so that a long wait costs
#: the service little.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.2


class JaxCoordinator:
    """Lets several processes agree over a store. Process 0 collects their values, and writes the answer for all.

    An agreement takes two requests of every process, and process 0 makes one more request for each other process. No
    batch needs an agreement. Keys are `<base>/topics/<topic>/<serial>/<process>`. Process 0 removes the keys of a
    serial when all processes have reached the next one.

    Args:
        store: the store of the run.
        base: the prefix of its keys.
        index: the index of this process.
        count: the number of processes.
        watch: the watch that knows which processes are lost.
        on_fail: the function to call when this process fails.
        on_close: the function that leaves the other processes.
        on_news: the function to call when this process learns that another one is lost.
    """

    def __init__(
        self,
        store: SealedStore,
        base: str,
        index: int,
        count: int,
        watch: Watch,
        *,
        on_fail: Callable[[], None],
        on_close: Callable[[], None],
        on_news: Callable[[], None],
    ) -> None:
        self.index, self.count = index, count
        self._store, self._base, self._watch = store, base, watch
        self._on_fail, self._on_close, self._on_news = on_fail, on_close, on_news
        self._serials: Counter[str] = Counter()
        self._named: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        """Returns the values of all processes, in their order. Waits for all.

        Raises:
            ProcessLostError: a process is lost, or did not arrive in time. The message names it.
        """
        return self._exchanged(topic, value, list, timeout)

    def tell(self, topic: str, value: str | None, timeout: float) -> str:
        """Returns the value of process 0. Waits for all.

        Raises:
            ProcessLostError: as `agree`.
        """
        return self._exchanged(topic, (value or "") if self.index == 0 else "", lambda values: values[0], timeout)

    def barrier(self, topic: str, timeout: float) -> None:
        """Returns when all processes have called it.

        Raises:
            ProcessLostError: as `agree`.
        """
        self._exchanged(topic, "", lambda values: "", timeout)

    def fail(self, error: BaseException) -> None:
        """Tells the other processes that this process ends with an error."""
        first = str(error).strip().split("\n")[0][:300]
        reason = f"it failed: {type(error).__name__}: {first}"
        if isinstance(error, ProcessLostError):  # which a restart of all processes may mend
            self._watch.note(self.index, reason)
        else:
            self._watch.tell("lost", self.index, reason)
            self._on_fail()

    def lost(self) -> Lost | None:
        """Returns the lost process, or None. A process that learns of a loss must end within the grace time."""
        if self._watch.lost is not None:
            self._on_news()
        return self._watch.lost

    def follow(self, at: Callable[[], int]) -> Callable[[], None]:
        """Begins the next series of operations of the devices, and returns a function that ends it earlier."""
        return self._watch.follow(at)

    def close(self) -> None:
        """Leaves the other processes. Process 0 waits until they have left."""
        if not self._closed:
            self._closed = True
            self._on_close()

    def _exchanged(self, topic: str, value: str, answer: Callable[[Sequence[str]], _Answer], timeout: float) -> _Answer:
        with self._lock:
            serial = self._serials[topic]
            self._serials[topic] += 1
        place = f"{self._base}/topics/{quote(topic, safe='')}"
        deadline = time.monotonic() + timeout
        try:
            if self.index:
                self._store.put(f"{place}/{serial}/{self.index}", value)
                return json.loads(self._await(f"{place}/{serial}", "all", topic, deadline, timeout))
            values = [value]
            for process in range(1, self.count):
                values.append(self._await(f"{place}/{serial}", str(process), topic, deadline, timeout))
            said = answer(values)
            self._store.put(f"{place}/{serial}/all", json.dumps(said))
            if serial:
                self._store.delete(f"{place}/{serial - 1}")
        except StoreGoneError as error:
            self._watch.note(0, f"its coordination service no longer answers: {error}", tell=False)
            raise self._error() from error
        return said

    def _await(self, place: str, name: str, topic: str, deadline: float, timeout: float) -> str:
        """Waits for the value of a process, or for the answer of process 0 for all, and returns it."""
        pause, began = _FIRST_PAUSE, time.monotonic()
        while (found := self._store.first(f"{place}/{name}")) is None:
            if self._watch.lost is not None:
                raise self._error()
            for process in sorted(self._watch.left if self.index == 0 else self._watch.left & {0}):
                if self._store.first(f"{place}/{process if self.index == 0 else name}") is None:
                    self._watch.look_for_stopped()  # says more
                    self._watch.note(process, f"it has ended, while others wait for it at {topic!r}")
                    raise self._error()
            if time.monotonic() > deadline:
                self._note_late(place, topic, timeout)
                raise self._error()
            if time.monotonic() - began > _SAY_SECS and topic not in self._named:
                self._named.add(topic)
                _log.warning(
                    "Process %d has waited %.0f s at %r for processes %s, and waits as long as they are alive. All "
                    "processes must make the same calls, and stop taking predictions at the same one.",
                    self.index,
                    _SAY_SECS,
                    topic,
                    self._late(place),
                )
            self._watch.changed.wait(min(pause, max(0.0, deadline - time.monotonic()) + 0.001))
            pause = min(1.5 * pause, _LONGEST_PAUSE)
        return found

    def _note_late(self, place: str, topic: str, timeout: float) -> None:
        late = self._late(place)
        others = f", nor have processes {late[1:]}" if late[1:] else ""
        self._watch.note(late[0], f"it has not arrived at {topic!r} within {timeout:g} s{others}")

    def _late(self, place: str) -> list[int]:
        """Returns the processes whose values are missing. Process 0, which collects them, is late if none is."""
        return [p for p in range(1, self.count) if self._store.first(f"{place}/{p}") is None] or [0]

    def _error(self) -> ProcessLostError:
        lost = self._watch.lost
        assert lost is not None
        self._on_news()
        return ProcessLostError(lost.describe(self.count), lost.index)
