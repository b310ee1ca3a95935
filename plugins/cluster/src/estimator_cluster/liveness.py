"""Detects which processes of a run are lost, have failed or have left, and shares these facts with all processes."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from estimator_cluster.store import SealedStore, StoreGoneError
from estimator_core.coordinator import Lost

#: The seconds between two reads of the messages of other processes.
LOOK_SECS = 1.0
#: The part of `heartbeat_secs` after which process 0 counts as silent. After all of it, jax aborts without a name.
_SOONER = 0.8


class Watch:
    """The known state of the other processes.

    It uses several threads. A query for the living processes waits for every living process, so a silent one would
    delay the news of a failed one. The service of a frozen process 0 never answers, so one thread only counts the
    seconds.

    Args:
        store: the store of the run.
        base: the prefix of its keys.
        index: the index of this process.
        who: the names of all processes. They are filled in as the processes introduce themselves.
        heartbeat_secs: the seconds of silence after which the service counts a process as dead.
        stays: whether this process watches after its end until no other is connected, because it holds the service.
        on_lost: the function to call once, from the thread that notices the loss.

    Attributes:
        lost: the first lost process, or None.
        left: the indices of processes that have reported their end.
        changed: the event that is set when a process is lost.
        alone: the event that is set when no other process is connected any more.
    """

    def __init__(
        self,
        store: SealedStore,
        base: str,
        index: int,
        who: Sequence[str],
        *,
        heartbeat_secs: float,
        stays: bool,
        on_lost: Callable[[Lost], None],
    ) -> None:
        self._store, self._base, self._index, self._who = store, f"{base}/state", index, who
        self._stopped = f"{base}/stopped"
        self._heartbeat_secs, self._stays, self._on_lost = heartbeat_secs, stays, on_lost
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._unanswered = 0.0
        self._series: tuple[int, Callable[[], int]] = 0, lambda: 0  # its number, and the operations begun
        self._told = 0  # the last series that this process has ended
        self.lost: Lost | None = None
        self.left: set[int] = set()
        self.changed, self.alone = threading.Event(), threading.Event()
        loops = {"news": self._look, "alive": self._count, **({"answers": self._listen} if index else {})}
        self._threads = [
            threading.Thread(target=self._ending_quietly, args=(loop,), name=f"processes-{name}", daemon=True)
            for name, loop in loops.items()
        ]
        for thread in self._threads:
            thread.start()

    def tell(self, kind: str, index: int, reason: str = "") -> None:
        """Tells all processes that a process has `left`, or is `lost`."""
        with contextlib.suppress(StoreGoneError):
            told = {"by": self._index, "kind": kind, "index": index, "reason": reason}
            self._store.put(f"{self._base}/{self._index}", json.dumps(told))

    def note(self, index: int, reason: str, *, tell: bool = True) -> None:
        """Records that a process is lost. Only the first loss counts."""
        with self._lock:
            if self.lost is not None or self._ended.is_set():
                return
            self.lost = lost = Lost(index, self._who[index], reason)
        self.changed.set()
        self._on_lost(lost)
        if tell:
            self.tell("lost", index, reason)

    def refresh(self) -> None:
        """Reads the messages of the other processes."""
        texts = self._store.values(self._base)
        self._unanswered = 0.0
        for text in texts:
            told: dict[str, Any] = json.loads(text)
            if told["kind"] == "left":
                self.left.add(told["index"])
            elif told["by"] != self._index:
                self.note(told["index"], told["reason"], tell=False)

    def follow(self, at: Callable[[], int]) -> Callable[[], None]:
        """Ends the series of operations of the devices, and begins the next one.

        A process that ends a series is lost to those that are further in it.

        Args:
            at: a function that returns the number of operations that this process has begun.

        Returns:
            A function that ends this series earlier.
        """
        number = self._series[0]
        self._end_series(number)
        self._series = number + 1, at
        return lambda: self._end_series(number + 1)

    def _end_series(self, number: int) -> None:
        if self._told < number == self._series[0]:
            self._told, at = number, self._series[1]()
            self._series = number, lambda: at  # what this process begins later belongs to no series
            place = f"{self._stopped}/{self._index}"
            with contextlib.suppress(StoreGoneError):
                self._store.delete(place)  # the others need only the newest one
                self._store.put(place, json.dumps({"by": self._index, "series": number, "at": at}))

    def leave(self) -> None:
        """Tells all processes that this one has left."""
        self._end_series(self._series[0])
        self.tell("left", self._index)

    def end(self) -> None:
        """Stops the detection of losses."""
        self._ended.set()

    def join(self, timeout: float) -> None:
        """Waits for the threads, which must not call the service when the interpreter ends."""
        for thread in self._threads:
            thread.join(timeout)

    def _ending_quietly(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except StoreGoneError as error:
            self.note(0, f"its coordination service no longer answers: {error}", tell=False)

    def _look(self) -> None:
        place = 0, 0
        while not self._ended.wait(LOOK_SECS):
            self.refresh()
            before, place = place, self._place()
            if place == before:  # it may wait in its devices
                self.look_for_stopped()

    def _place(self) -> tuple[int, int]:
        number, at = self._series
        return number, at()

    def look_for_stopped(self) -> None:
        """Looks whether another process has ended the series of this one, which is further in it."""
        number, at = self._place()
        for told in map(json.loads, self._store.values(self._stopped)):
            if told["series"] == number and told["at"] < at:
                self.note(
                    told["by"],
                    f"it has stopped taking predictions, and process {self._index} waits for its part of the next "
                    "batch. All must stop at the same prediction",
                )

    def _listen(self) -> None:
        turn = time.monotonic()
        while not self._ended.wait(LOOK_SECS / 4):
            began, turn = turn, time.monotonic()
            # If this process was itself stopped for long, it sent no query meanwhile, so only a part of the time
            # counts.
            self._unanswered += min(turn - began, LOOK_SECS)
            if self._unanswered > _SOONER * self._heartbeat_secs:
                silent = f"its coordination service has not answered for {self._unanswered:.0f} s: frozen or cut off"
                self.note(0, silent, tell=False)
                return

    def _count(self) -> None:
        count = len(self._who)
        while not self.alone.is_set() and (self._stays or not self._ended.is_set()):
            gone = set(range(count)) - self._store.live(count)
            if len(gone) == count - 1:
                self.alone.set()
            if not self._ended.is_set() and gone - self.left:
                self.refresh()  # a process that leaves reports it before it disconnects
                for index in sorted(gone - self.left):
                    self.note(
                        index, f"nothing was heard from it for {self._heartbeat_secs:g} s: killed, frozen or cut off"
                    )
            if self._ended.is_set():
                self.alone.wait(0.05)
            else:
                self._ended.wait(max(LOOK_SECS, count / 100))
