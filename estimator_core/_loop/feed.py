"""Passes batches from an input to the step: draws ahead, and places them on the devices."""

from __future__ import annotations

import itertools
import logging
import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from estimator_core._backends import Placement
from estimator_core.coordinator import Coordinator

if TYPE_CHECKING:
    from estimator_core._loop.shared_feed import SharedFeed

_log = logging.getLogger("estimator_core")
_MEASURED = 8
_SLOW_SECONDS = 0.001
_DEPTH = 4
#: The numbers of feeds. Every process opens the same feeds in the same order.
_NUMBERS = itertools.count()


class Feed(Iterator[Any]):
    """An iterator of placed batches that can be closed.

    With "auto", the first batches are drawn inline and timed. A thread that draws ahead costs about 150 microseconds
    per batch, so it is started only when drawing takes longer than a millisecond.
    """

    def __init__(self, source: Any, place: Any, depth: int | Literal["auto"]) -> None:
        self._source: Any = source
        self._place = place
        if isinstance(depth, int) and depth > 0:
            self._draw_ahead(depth)
        self._batches = itertools.chain.from_iterable(self._parts(measure=depth == "auto"))

    def __iter__(self) -> Iterator[Any]:
        return self._batches

    def __next__(self) -> Any:
        return next(self._batches)

    def close(self) -> None:
        """Stops drawing, and joins the thread if there is one."""
        self._source.close()

    def _parts(self, *, measure: bool) -> Iterator[Iterator[Any]]:
        """Yields iterators of all batches, one after another. A method or a generator would cost one call per batch."""
        if measure:
            yield self._measured()
        yield iter(self._source) if self._place is None else map(self._place, self._source)

    def _measured(self) -> Iterator[Any]:
        """Yields the first batches. Then a thread may replace this iterator."""
        place = self._place or _as_it_is
        times: list[float] = []
        while len(times) < _MEASURED:
            began = time.perf_counter()
            batch = next(self._source, None)
            if batch is None:
                return
            batch = place(batch)
            times.append(time.perf_counter() - began)
            yield batch
        # The first draw opens the input, so its time is not representative.
        seconds = statistics.median(times[1:])
        if seconds > _SLOW_SECONDS:
            _log.info(
                "Drawing a batch takes %.1f ms, so a thread draws %d batches ahead (RunConfig.prefetch).",
                seconds * 1e3,
                _DEPTH,
            )
            self._draw_ahead(_DEPTH)

    def _draw_ahead(self, depth: int) -> None:
        from estimator_core._inputs.prefetch import prefetch

        self._source = prefetch(self._source, self._place or _as_it_is, depth=depth)
        self._place = None


def feed(source: Any, placement: Placement, depth: int | Literal["auto"], peers: Coordinator) -> Feed | SharedFeed:
    """Returns the batches of an input, placed on the devices."""
    if placement.spans_processes:
        from estimator_core._loop.shared_feed import SharedFeed

        return SharedFeed(Feed(source, None, depth), placement, peers, f"feed-{next(_NUMBERS)}", source)
    return Feed(source, None if placement.single else placement.batch, depth)


def _as_it_is(batch: Any) -> Any:
    return batch
