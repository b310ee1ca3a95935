"""Examines whether a bucket, a proxy or a mount meets the needs of a run: five checks and the rates."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from estimator_core.storage import (
    ObjectExistsError,
    ObjectMissingError,
    ShortReadError,
    Storage,
    StorageError,
)

_WRITERS, _RACES, _OBJECTS, _TIMED = 16, 4, 20, 10


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of a check.

    Args:
        check: the name of the check, in a few words.
        ok: whether the storage meets the needs of a run.
        text: the observation.
    """

    check: str
    ok: bool
    text: str


class _Fault(Exception):  # noqa: N818 - ends a check
    """A violation that a check saw."""


def examine(storage: Storage) -> Iterator[Finding]:
    """Runs five checks, each in a separate place below `doctor-…`, which is removed.

    Args:
        storage: the storage to examine; its objects are not touched.

    Example:
        >>> import tempfile
        >>> from estimator_core.storage import open_storage
        >>> all(finding.ok for finding in examine(open_storage(tempfile.mkdtemp())))
        True
    """
    checks: dict[str, Callable[[Storage, str], str]] = {
        "conditional writes": _conditional,
        "16 writers at once": _at_once,
        "lists": _lists,
        "ranges": _ranges,
        "deletes": _deletes,
    }
    for name, check in checks.items():
        place = f"doctor-{uuid.uuid4().hex[:12]}"
        try:
            yield Finding(check=name, ok=True, text=check(storage, place))
        except (_Fault, StorageError) as error:
            yield Finding(check=name, ok=False, text=str(error))
        finally:
            _clean(storage, place)


def measure(storage: Storage, size: int) -> str:
    """Returns the rates of small and large writes and reads, in words.

    Args:
        storage: the storage to measure.
        size: the size of the large object, in bytes.

    Raises:
        StorageError: an object cannot be written or read.
    """
    place = f"doctor-{uuid.uuid4().hex[:12]}"
    chunk = bytes(range(256)) * (1 << 12)
    chunks = [memoryview(chunk)[: size - at] for at in range(0, size, len(chunk))]
    try:
        seconds = [
            _timed(lambda key=f"{place}/small/{number}": storage.put_new(key, b"x" * 500)) for number in range(_TIMED)
        ]
        written = _timed(lambda: storage.put_stream(f"{place}/large", chunks, size=size))
        read = _timed(lambda: storage.get_ranges(f"{place}/large", [(0, size)]))
    finally:
        _clean(storage, place)
    return (
        f"a conditional write takes {1e3 * statistics.median(seconds):.0f} ms (median of {_TIMED}); {size / 1e6:.0f} "
        f"MB are written at {size / 1e6 / written:.0f} MB/s and read at {size / 1e6 / read:.0f} MB/s"
    )


def verdict(findings: list[Finding]) -> str:
    """Returns the meaning of the findings for a run."""
    failed = [finding.check for finding in findings if not finding.ok]
    if not failed:
        return "Runs are safe here: if two write one model_dir, one is stopped before it harms the other."
    if failed == [finding.check for finding in findings]:
        return "Nothing works here yet: see the first fault."
    return (
        f"Do not train here: {', '.join(failed)} failed. Two runs could write one model_dir and destroy each other's "
        "checkpoints. Use another server or mount, or train into a local directory and copy it."
    )


def _conditional(storage: Storage, place: str) -> str:
    for number in range(3):
        key = f"{place}/{number}"
        try:
            storage.put_new(key, b"first")
        except ObjectExistsError:
            raise _Fault(
                "a new key is reported as existing: something between here and the store sends requests twice"
            ) from None
        try:
            storage.put_new(key, b"second")
        except ObjectExistsError:
            pass
        else:
            raise _Fault("a second conditional write of a key is accepted: the server ignores the condition")
        if storage.get(key) != b"first":
            raise _Fault("a second conditional write is refused, but it changed the object")
    return "the second write of a key is refused, and the first stays"


def _at_once(storage: Storage, place: str) -> str:
    def wins(key: str, writer: int) -> bool:
        try:
            storage.put_new(key, b"%d" % writer)
        except ObjectExistsError:
            return False
        return True

    with ThreadPoolExecutor(_WRITERS) as pool:
        for number in range(_RACES):
            key = f"{place}/{number}"
            won = [at for at, one in enumerate(pool.map(wins, [key] * _WRITERS, range(_WRITERS))) if one]
            if len(won) != 1:
                raise _Fault(f"of {_WRITERS} simultaneous conditional writes of one key, {len(won)} were accepted")
            if storage.get(key) != b"%d" % won[0]:
                raise _Fault("the object is not that of the writer whose conditional write was accepted")
    return f"in {_RACES} races, one of {_WRITERS} writes was accepted, and its object stayed"


def _lists(storage: Storage, place: str) -> str:
    keys = sorted(f"{place}/{number}/x" for number in range(_OBJECTS))
    for written, key in enumerate(sorted(keys), 1):
        storage.put(key, b"x")
        if len(list(storage.list(place))) != written:
            raise _Fault("a list lacks an object that was just written")
    if [entry.key for entry in storage.list(place)] != keys:
        raise _Fault("a list has names other than those written")
    if [entry.key for entry in storage.list(f"{place}/1")] != [f"{place}/1/x"]:
        raise _Fault("a list of .../1 has objects below .../10")
    storage.delete(keys[:1])
    if [entry.key for entry in storage.list(place)] != keys[1:]:
        raise _Fault("a list still has an object that was just deleted")
    return "new objects are listed, deleted ones are not"


def _ranges(storage: Storage, place: str) -> str:
    key, data = f"{place}/data", bytes(range(256)) * 40
    storage.put_stream(key, [data], size=len(data))
    ranges = [(0, 1), (255, 511), (len(data) - 1, len(data)), (0, len(data))]
    if [bytes(part) for part in storage.get_ranges(key, ranges)] != [data[begin:end] for begin, end in ranges]:
        raise _Fault("a range of an object has bytes other than those written")
    try:
        storage.get_ranges(key, [(0, len(data) + 1)])
    except ShortReadError:
        return "ranges of an object have the bytes that were written"
    raise _Fault("more bytes can be read than were written")


def _deletes(storage: Storage, place: str) -> str:
    key = f"{place}/data"
    storage.put(key, b"x")
    for _ in range(2):
        storage.delete([key])
        try:
            storage.get(key)
        except ObjectMissingError:
            continue
        raise _Fault("a deleted object can still be read")
    storage.put_new(key, b"again")
    return "a deleted object is gone, and its key is free"


def _clean(storage: Storage, place: str) -> None:
    """Removes the objects of a check. A missing permission was already reported by the check."""
    try:
        storage.delete([entry.key for entry in storage.list(place)])
    except StorageError:
        return


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
