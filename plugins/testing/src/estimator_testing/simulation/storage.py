"""A storage of a simulation: at every call, faults can happen and other processes can run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from estimator_core.storage import Data, Entry, ShortReadError, StorageError
from estimator_testing._core import check_key
from estimator_testing.simulation.disk import URL, Disk

_Answer = TypeVar("_Answer")


class Carry(Protocol):
    """Executes a call of a process, with its faults."""

    def __call__(self, call: str, key: str, perform: Callable[[bool], _Answer]) -> _Answer:
        """Returns the result of `perform`, whose argument is whether to use outdated data."""
        ...


class VirtualStorage:
    """A `Storage` in memory.

    Args:
        disk: the disk that it shares with others.
        who: the process and its life, for the record.
        carry: the function that executes each call.
    """

    def __init__(self, disk: Disk, who: tuple[str, int], carry: Carry) -> None:
        self._disk = disk
        self._who = who
        self._carry = carry

    @property
    def url(self) -> str:
        """The root, in the form that errors show."""
        return URL

    def put_new(self, key: str, data: bytes) -> None:
        """Writes an object that does not exist."""
        self._write("put_new", key, bytes(data))

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces an object."""
        self._write("put", key, bytes(data))

    def put_stream(self, key: str, chunks: Iterable[Data], *, size: int) -> None:
        """Writes or replaces an object, either completely or not at all."""
        data = b"".join(chunks)
        if len(data) != size:
            raise StorageError(f"{URL}: {key} should have {size} bytes, but {len(data)} were supplied.")
        self._write("put_stream", key, data)

    def get(self, key: str) -> bytes:
        """Returns the bytes of an object."""
        return self._carry("get", key, lambda stale: self._disk.read(key))

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """Returns parts of an object."""
        data = self._carry("get_ranges", key, lambda stale: self._disk.read(key))
        if any(end > len(data) for _, end in ranges):
            raise ShortReadError(f"{URL}: {key} has only {len(data)} bytes.")
        return [data[begin:end] for begin, end in ranges]

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yields the objects below a prefix."""
        return self._carry("list", prefix, lambda stale: self._disk.list(prefix, stale=stale))

    def now(self) -> float:
        """Returns the time of the storage."""
        return self._carry("now", "", lambda stale: self._disk.clock)

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects, with one request for each."""
        for key in keys:
            self._delete(key)

    def close(self) -> None:
        """Does nothing, because nothing is open."""

    def _write(self, call: str, key: str, data: bytes) -> None:
        self._carry(call, check_key(key), lambda stale: self._disk.write(self._who, call, key, data))

    def _delete(self, key: str) -> None:
        self._carry("delete", key, lambda stale: self._disk.delete(self._who, key))
