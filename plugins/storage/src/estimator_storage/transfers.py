"""Large transfers: their parts, their progress and their log lines."""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from estimator_core.storage import Data, ShortReadError, StorageError

logger = logging.getLogger("estimator_storage")

#: The number of bytes per request, if the store allows a choice.
PART = 8 << 20
#: The number of concurrent requests of one transfer.
AT_ONCE = 8
#: The largest gap in bytes between two ranges that one request reads. The bytes of the gap arrive sooner than another
#: answer.
NEAR = 256 << 10
#: The seconds between two log lines about a transfer.
EVERY = 10.0


class Progress:
    """Counts the bytes of a transfer and logs its progress every ten seconds. Several threads may add bytes.

    Args:
        what: the content and the direction of the transfer, for messages.
        size: the number of bytes.
        clock: the function that returns the time in seconds.

    Example:
        >>> Progress("a sent", 10).add(5)
    """

    def __init__(self, what: str, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._size, self._clock = what, size, clock
        self._lock = threading.Lock()
        self._done = 0
        self._start = self._said = clock()

    def add(self, count: int) -> None:
        """Adds this many transferred bytes."""
        with self._lock:
            self._done += count
            now = self._clock()
            if now - self._said >= EVERY:
                self._said = now
                rate = self._done / (now - self._start)
                logger.info(
                    "%s: %.0f of %.0f MB, %.1f MB/s", self._what, self._done / 1e6, self._size / 1e6, rate / 1e6
                )


class Outgoing:
    """Yields the outgoing bytes of a stream in pieces of bounded size, and counts them.

    A client library may replace an error of the caller's iterator by its own. `error` keeps the original.

    Args:
        chunks: the chunks of the caller.
        size: the required number of bytes.
        place: the place, for messages.

    Attributes:
        error: the error that ended the stream early, or None.
    """

    def __init__(self, chunks: Iterable[Data], size: int, place: str) -> None:
        self._chunks, self._size, self._place = chunks, size, place
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[memoryview]:
        try:
            yield from self._pieces()
        except Exception as error:
            self.error = error
            raise

    def _pieces(self) -> Iterator[memoryview]:
        progress, sent = Progress(f"{self._place} sent", self._size), 0
        for chunk in self._chunks:
            view = memoryview(chunk).cast("B")
            sent += len(view)
            if sent > self._size:
                raise self._wrong(f"{sent} or more")
            for at in range(0, len(view), PART):
                yield view[at : at + PART]
                progress.add(len(view[at : at + PART]))
        if sent < self._size:
            raise self._wrong(str(sent))

    def _wrong(self, given: str) -> StorageError:
        return StorageError(f"{self._place} should have {self._size} bytes, but {given} were supplied.")


def spans_of(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the spans to request for all ranges. Near ranges are joined, and empty ones are left out.

    Example:
        >>> spans_of([(5, 9), (0, 3), (7, 7), (1 << 30, (1 << 30) + 1)])
        [(0, 9), (1073741824, 1073741825)]
    """
    spans: list[tuple[int, int]] = []
    for begin, end in sorted(one for one in ranges if one[0] < one[1]):
        if spans and begin - spans[-1][1] <= NEAR:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return spans


def read_ranges(place: str, ranges: Sequence[tuple[int, int]], fetch: Callable[[int, int], Data]) -> list[Data]:
    """Returns ranges of an object, of which at least one is not empty, with several requests at a time.

    Args:
        place: the URL and the key, for messages.
        ranges: the pairs (first byte, byte after the last).
        fetch: the function that requests the bytes from the first to before the second.

    Raises:
        ShortReadError: the object is too short.
    """
    spans = spans_of(ranges)
    found = [memoryview(bytearray(end - begin)) for begin, end in spans]
    progress = Progress(f"{place} received", sum(map(len, found)))

    def fill(piece: tuple[int, int, int]) -> None:
        number, begin, end = piece
        data = memoryview(fetch(begin, end))
        if len(data) != end - begin:
            raise ShortReadError(f"{place} ends before byte {end}.")
        at = begin - spans[number][0]
        found[number][at : at + len(data)] = data
        progress.add(len(data))

    pieces = [
        (number, at, min(at + PART, end)) for number, (begin, end) in enumerate(spans) for at in range(begin, end, PART)
    ]
    if len(pieces) == 1:
        fill(pieces[0])
    else:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(fill, pieces))
    return [_cut(spans, found, begin, end) for begin, end in ranges]


def _cut(spans: Sequence[tuple[int, int]], found: Sequence[memoryview], begin: int, end: int) -> Data:
    if begin == end:
        return b""
    number = bisect_right(spans, begin, key=lambda span: span[0]) - 1
    return found[number][begin - spans[number][0] : end - spans[number][0]]
