"""Dynamic batching: requests that wait while the device is busy run together, in few padded batch sizes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

Arrays = Mapping[str, np.ndarray]
BATCH_SIZES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class _Waiting:
    inputs: Arrays
    rows: int
    result: asyncio.Future[dict[str, np.ndarray]]


class Batcher:
    """Runs a function of batches for many callers at a time.

    A request runs at once when nothing else does; those that come meanwhile are taken together by the next run. No
    request
    waits for others to come.

    Args:
        run: `arrays -> arrays`, the first axis of both the batch.
        batch_sizes: the sizes it is run with; larger requests are cut. Each is run once by `warm_up`.
        batched: names of the outputs with a batch axis; others are the same for every caller.
        observe: called with rows and padded size of each run.
    """

    def __init__(
        self,
        run: Callable[[Arrays], Arrays],
        batch_sizes: Sequence[int],
        batched: Sequence[str],
        observe: Callable[[int, int], None] = lambda rows, size: None,
    ) -> None:
        self._run = run
        self._sizes = sorted(batch_sizes)
        self._batched = frozenset(batched)
        self._observe = observe
        self._queue: asyncio.Queue[_Waiting | None] = asyncio.Queue()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="infer")
        self._task: asyncio.Task[None] | None = None
        self._left: _Waiting | None = None

    def warm_up(self, inputs: Callable[[int], Arrays]) -> None:
        """Runs every size once, on `inputs(size)`, so that no request waits for a compilation."""
        for size in self._sizes:
            self._run(inputs(size))

    async def __call__(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """The outputs for some rows."""
        if self._task is None:
            self._task = asyncio.create_task(self._loop())
        rows = len(next(iter(inputs.values())))
        largest = self._sizes[-1]
        pieces = [
            self._enqueue({name: value[start : start + largest] for name, value in inputs.items()})
            for start in range(0, rows, largest)
        ]
        results = await asyncio.gather(*pieces)
        if len(results) == 1:
            return results[0]
        return {
            name: np.concatenate([result[name] for result in results]) if name in self._batched else value
            for name, value in results[0].items()
        }

    async def close(self) -> None:
        """Finishes what is waiting, then stops."""
        if self._task is not None:
            self._queue.put_nowait(None)
            await self._task
        self._worker.shutdown()

    def _enqueue(self, inputs: Arrays) -> asyncio.Future[dict[str, np.ndarray]]:
        result: asyncio.Future[dict[str, np.ndarray]] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_Waiting(inputs, len(next(iter(inputs.values()))), result))
        return result

    async def _loop(self) -> None:
        while True:
            first = self._left or await self._queue.get()
            self._left = None
            if first is None:
                return
            batch = self._take(first)
            try:
                outputs = await asyncio.get_running_loop().run_in_executor(self._worker, self._together, batch)
            except Exception as error:
                for waiting in batch:
                    if not waiting.result.done():
                        waiting.result.set_exception(error)
                continue
            for waiting, output in zip(batch, outputs, strict=True):
                if not waiting.result.done():  # its client may have gone
                    waiting.result.set_result(output)

    def _take(self, first: _Waiting) -> list[_Waiting]:
        batch, rows = [first], first.rows
        while not self._queue.empty():
            waiting = self._queue.get_nowait()
            if waiting is None:
                self._queue.put_nowait(None)
                break
            if rows + waiting.rows > self._sizes[-1]:
                self._left = waiting
                break
            batch.append(waiting)
            rows += waiting.rows
        return batch

    def _together(self, batch: Sequence[_Waiting]) -> list[dict[str, np.ndarray]]:
        rows = sum(waiting.rows for waiting in batch)
        size = next(size for size in self._sizes if size >= rows)
        inputs = {name: _joined([waiting.inputs[name] for waiting in batch], size) for name in batch[0].inputs}
        outputs = {name: np.asarray(value) for name, value in self._run(inputs).items()}
        self._observe(rows, size)
        results: list[dict[str, np.ndarray]] = []
        start = 0
        for waiting in batch:
            end = start + waiting.rows
            results.append(
                {name: value[start:end] if name in self._batched else value for name, value in outputs.items()}
            )
            start = end
        return results


def _joined(arrays: Sequence[np.ndarray], size: int) -> np.ndarray:
    """The arrays one after another; the last row is repeated up to `size`."""
    rows = sum(len(array) for array in arrays)
    padding = [np.broadcast_to(arrays[-1][-1:], (size - rows, *arrays[-1].shape[1:]))] if size > rows else []
    return np.concatenate([*arrays, *padding]) if len(arrays) + len(padding) > 1 else arrays[0]
