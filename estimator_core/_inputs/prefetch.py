"""Draws and places batches ahead in a thread."""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections.abc import Callable, Iterator

from estimator_core._inputs.contract import Batch, InputPosition
from estimator_core._inputs.source import BatchSource
from estimator_core.errors import ArgumentError

_log = logging.getLogger(__name__)

#: The seconds between two checks whether the main thread is alive, by a thread that waits for room.
_LOOK_SECONDS = 0.5
#: The seconds of waiting for a draw after which `close` logs a warning.
_SAY_SECONDS = 10.0


def prefetch(source: BatchSource, place: Callable[[Batch], Batch], *, depth: int) -> PrefetchedSource:
    """Draws and places up to `depth` batches ahead of their use.

    Each batch keeps the position from when it was drawn, so a checkpoint stores the position of the last used batch and
    not of the last drawn one.

    Args:
        source: the source of the batches. The prefetched source owns it.
        place: a function that puts a batch on its devices. It runs in the thread.
        depth: the largest number of ready batches, at least 1.

    Raises:
        ArgumentError: depth is below 1.

    Example:
        >>> import numpy as np
        >>> from estimator_core._inputs.source import open_input
        >>> batches = [({"x": np.full((2, 1), i, np.float32)}, None) for i in range(3)]
        >>> ahead = prefetch(open_input(lambda: batches, mode="train"), lambda batch: batch, depth=2)
        >>> [float(batch.features["x"][0, 0]) for batch in ahead]
        [0.0, 1.0, 2.0]
        >>> ahead.close()
    """
    if depth < 1:
        raise ArgumentError(f"depth must be at least 1, given: {depth}. Leave prefetch out to draw inline.")
    return PrefetchedSource(source, place, depth)


class _End:
    """The last object that the thread sends."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Channel:
    """The objects that the thread and its consumer share.

    The thread has no other references, so it does not keep the consumer alive.

    The queues are SimpleQueues because these are written in C. A transfer through `queue.Queue` costs several times as
    much.
    """

    def __init__(self, depth: int) -> None:
        self.ready: queue.SimpleQueue[Batch | _End] = queue.SimpleQueue()
        self.room: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.stopped = False
        for _ in range(depth):
            self.room.put(None)

    def stop(self) -> None:
        self.stopped = True
        self.room.put(None)  # wakes the thread if it waits for room

    def wait_for_room(self) -> bool:
        """Waits for room and returns True. Returns False after the consumer has stopped reading."""
        main = threading.main_thread()
        while not self.stopped:
            try:
                self.room.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                if not main.is_alive():
                    return False
            else:
                return not self.stopped and main.is_alive()
        return False


class PrefetchedSource(Iterator[Batch]):
    """A `BatchSource` that a thread reads ahead, with the same interface.

    The thread starts at the first `next`. It ends with the input, with `close`, when this object is dropped, or with
    the main thread. Its errors are raised here, with their own traceback.
    """

    fresh_arrays: bool = True

    def __init__(self, source: BatchSource, place: Callable[[Batch], Batch], depth: int) -> None:
        self._source = source
        self._channel = _Channel(depth)
        self._thread = threading.Thread(
            target=_draw, args=(source, place, self._channel), name="estimator-input", daemon=False
        )
        self._ended = False
        self._release = weakref.finalize(self, self._channel.stop)
        self.position: InputPosition | None = None

    @property
    def restored(self) -> str | None:
        """See `BatchSource.restored`."""
        return self._source.restored

    def __next__(self) -> Batch:
        if self._ended:
            raise StopIteration
        if self._thread.ident is None:
            self._thread.start()
        item = self._channel.ready.get()
        if isinstance(item, _End):
            self._ended = True
            self._thread.join()
            if item.error is not None:
                raise item.error
            self.position = self._source.position
            raise StopIteration
        self._channel.room.put(None)
        self.position = item.position
        return item

    def close(self) -> None:
        """Stops the thread, waits for it, including a draw in progress, and closes the source."""
        self._ended = True
        self._release()
        if self._thread.ident is not None:
            self._thread.join(_SAY_SECONDS)
            if self._thread.is_alive():
                _log.warning("Waiting for the input: a draw has taken more than %g s.", _SAY_SECONDS)
                self._thread.join()
        self._source.close()


def _draw(source: BatchSource, place: Callable[[Batch], Batch], channel: _Channel) -> None:
    """Runs in the thread. It draws and places batches until the end, an error, or the consumer stops reading."""
    end = _End(None)
    try:
        while channel.wait_for_room():
            batch = next(source, None)
            if batch is None:
                break
            channel.ready.put(place(batch))
    except BaseException as error:  # raised in the consumer
        end = _End(error)
    channel.ready.put(end)
