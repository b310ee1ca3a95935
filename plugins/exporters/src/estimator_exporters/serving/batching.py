"""Dynamic batching: requests that wait while the device is busy run together, padded to a few batch sizes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

Arrays = Mapping[str, np.ndarray]
BATCH_SIZES = (1, 2, 4, 8, 16, 32)
_AHEAD = 16  # the number of pieces of a long request that wait at a time


@dataclass(frozen=True, slots=True)
class _Waiting:
    inputs: Arrays
    rows: int
    result: asyncio.Future[dict[str, np.ndarray]]
    since: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the function, and the requests it served.

    Attributes:
        rows: the number of rows of all requests.
        size: the number of rows with the padding.
        requests: the number of requests, or of pieces of long requests.
        queue_ns: the sum of their waiting times, in nanoseconds.
        compute_ns: the time of the run itself, in nanoseconds.
    """

    rows: int
    size: int
    requests: int
    queue_ns: int
    compute_ns: int


Observe = Callable[[Run], None]


def unobserved(run: Run) -> None:
    """Ignores the run."""


class Batcher:
    """Runs a function of batches for many callers at a time.

    A request runs at once if the thread is idle. The next run combines all requests that arrive in the meantime. No
    request waits for others to arrive.

    Args:
        run: `arrays -> arrays`, with the batch as the first axis of both. It is called in one thread of the batcher.
        batch_sizes: the batch sizes of the runs. Larger requests are cut. `warm_up` runs each size once.
        batched: the names of the outputs with a batch axis. Other outputs are the same for every caller.
        observe: called after each run.
    """

    def __init__(
        self,
        run: Callable[[Arrays], Arrays],
        batch_sizes: Sequence[int],
        batched: Sequence[str],
        observe: Observe = unobserved,
    ) -> None:
        self._run = run
        self._sizes = sorted(batch_sizes)
        self._batched = frozenset(batched)
        self._observe = observe
        self._waiting: deque[_Waiting] = deque()
        self._busy = False
        self._closing = False
        self._idle = asyncio.Event()
        self._thread: _Thread | None = None

    def warm_up(self, inputs: Callable[[int], Arrays]) -> None:
        """Runs every size once on `inputs(size)`, so that no request waits for a compilation."""
        for size in self._sizes:
            self._run(inputs(size))

    async def __call__(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """Returns the outputs for some rows."""
        rows, largest = len(next(iter(inputs.values()))), self._sizes[-1]
        if rows <= largest:
            return await self._enqueue(inputs, rows)
        groups: list[dict[str, np.ndarray]] = []
        for start in range(0, rows, _AHEAD * largest):  # other requests run in between
            pieces = [
                self._enqueue(
                    {name: value[at : at + largest] for name, value in inputs.items()}, min(largest, rows - at)
                )
                for at in range(start, min(rows, start + _AHEAD * largest), largest)
            ]
            groups.append(self._concatenated(await asyncio.gather(*pieces)))
        return self._concatenated(groups)

    def _concatenated(self, results: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        return {
            name: np.concatenate([result[name] for result in results]) if name in self._batched else value
            for name, value in results[0].items()
        }

    async def close(self) -> None:
        """Finishes waiting requests, then stops. A late request is still answered."""
        self._closing = True
        while self._busy:
            self._idle.clear()
            await self._idle.wait()
        self._stop()

    def _enqueue(self, inputs: Arrays, rows: int) -> asyncio.Future[dict[str, np.ndarray]]:
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = _Thread(self._together, lambda *done: loop.call_soon_threadsafe(self._finish, *done))
        result: asyncio.Future[dict[str, np.ndarray]] = loop.create_future()
        self._waiting.append(_Waiting(inputs, rows, result, time.perf_counter_ns()))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._start)  # after the requests that the loop has read at the same time
        return result

    def _start(self) -> None:
        """Passes waiting requests, up to the largest size, to the thread. Drops requests of disconnected clients."""
        batch: list[_Waiting] = []
        rows = 0
        while self._waiting and (self._waiting[0].result.done() or rows + self._waiting[0].rows <= self._sizes[-1]):
            first = self._waiting.popleft()
            if not first.result.done():
                batch.append(first)
                rows += first.rows
        self._busy = bool(batch)
        if batch:
            assert self._thread is not None
            self._thread.work.put(batch)
            return
        self._idle.set()
        if self._closing:
            self._stop()

    def _stop(self) -> None:
        if self._thread is not None:
            self._thread.work.put(None)
            self._thread = None

    def _finish(
        self, batch: Sequence[_Waiting], outputs: Sequence[dict[str, np.ndarray]], error: Exception | None
    ) -> None:
        self._start()  # the next batch runs while the answers of this one are written
        for number, waiting in enumerate(batch):
            if waiting.result.done():  # its client has disconnected
                continue
            if error is None:
                waiting.result.set_result(outputs[number])
            else:
                waiting.result.set_exception(error)

    def _together(self, batch: Sequence[_Waiting]) -> list[dict[str, np.ndarray]]:
        began = time.perf_counter_ns()
        rows = sum(waiting.rows for waiting in batch)
        size = next(size for size in self._sizes if size >= rows)
        inputs = {name: _joined([waiting.inputs[name] for waiting in batch], size) for name in batch[0].inputs}
        outputs = {name: np.asarray(value) for name, value in self._run(inputs).items()}
        queued = len(batch) * began - sum(waiting.since for waiting in batch)
        self._observe(Run(rows, size, len(batch), queued, time.perf_counter_ns() - began))
        results: list[dict[str, np.ndarray]] = []
        start = 0
        for waiting in batch:
            end = start + waiting.rows
            results.append(
                {name: value[start:end] if name in self._batched else value for name, value in outputs.items()}
            )
            start = end
        return results


class _Thread:
    """Runs the batches of its queue, one after another, until it receives None.

    Args:
        run: returns the outputs of every request of a batch.
        finish: called with the batch, its outputs and its error.
    """

    def __init__(
        self,
        run: Callable[[Sequence[_Waiting]], list[dict[str, np.ndarray]]],
        finish: Callable[[Sequence[_Waiting], Sequence[dict[str, np.ndarray]], Exception | None], object],
    ) -> None:
        self._run = run
        self._finish = finish
        self.work: SimpleQueue[Sequence[_Waiting] | None] = SimpleQueue()
        threading.Thread(target=self._serve, name="infer", daemon=True).start()

    def _serve(self) -> None:
        while (batch := self.work.get()) is not None:
            try:
                outputs, error = self._run(batch), None
            except Exception as raised:
                outputs, error = [], raised
            self._finish(batch, outputs, error)


def _joined(arrays: Sequence[np.ndarray], size: int) -> np.ndarray:
    """Concatenates the arrays, and repeats the last row up to `size` rows."""
    rows = sum(len(array) for array in arrays)
    padding = [np.broadcast_to(arrays[-1][-1:], (size - rows, *arrays[-1].shape[1:]))] if size > rows else []
    return np.concatenate([*arrays, *padding]) if len(arrays) + len(padding) > 1 else arrays[0]
