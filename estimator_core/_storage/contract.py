"""The contract of a storage: named objects under one root, one conditional write, and what it raises."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from estimator_core._cluster.processes import SaidByEach
from estimator_core._files import DRAFT
from estimator_core.errors import ArgumentError, EstimatorError

_LONGEST_KEY, _LONGEST_PART = 900, 255
_REFUSED = re.compile(r"[\x00-\x1f\\\x7f\ud800-\udfff]")


def check_key(key: str) -> str:
    """The key, if every storage can hold it.

    Object stores refuse or change more than file systems do. Azure turns a backslash into `/` and drops the dot at the
    end of a part. S3's lists cannot represent control characters. A bucket's names have at most 1,024 bytes, the prefix
    included.

    Raises:
        ArgumentError: the key is empty, absolute, or longer than 900 bytes. Or it contains a backslash, a control
            character or a surrogate. Or a part is empty, ends in a dot (as `.` and `..` do), begins with `.draft-`, or
            has more than 255 bytes.

    Example:
        >>> check_key("journal/0000000001")
        'journal/0000000001'
        >>> check_key("../other")
        Traceback (most recent call last):
            ...
        estimator_core.errors.ArgumentError: '../other' is not a key: a part must not be empty or end in a dot.
    """
    if fault := _fault(key):
        raise ArgumentError(f"{key[:60]!r} is not a key: {fault}.")
    return key


def is_key(key: str) -> bool:
    """Whether it can be a key.

    Example:
        >>> is_key("a/b"), is_key("a//b")
        (True, False)
    """
    return not _fault(key)


def check_ranges(ranges: Sequence[tuple[int, int]]) -> None:
    """Refuses ranges that no object has.

    Raises:
        ArgumentError: one begins before 0 or after its end.

    Example:
        >>> check_ranges([(0, 4), (4, 4)])
    """
    for begin, end in ranges:
        if not 0 <= begin <= end:
            raise ArgumentError(f"({begin}, {end}) is not a range of bytes: its begin is from 0 to its end.")


@functools.lru_cache(maxsize=1024)
def _fault(key: str) -> str:
    """Why it is not a key; "" if it is one."""
    parts = key.split("/")
    if any(part.endswith(".") or not part for part in parts):
        return "a part must not be empty or end in a dot"
    if any(part.startswith(DRAFT) for part in parts):
        return f"names that begin with {DRAFT!r} belong to the storage"
    if _REFUSED.search(key):
        return "it has a backslash, a control character or a surrogate"
    if len(key.encode()) > _LONGEST_KEY or any(len(part.encode()) > _LONGEST_PART for part in parts):
        return f"it has more than {_LONGEST_KEY} bytes, or {_LONGEST_PART} in a part"
    return ""


class StorageError(EstimatorError, OSError):
    """A storage cannot do what was requested.

    The message names the storage, the key, and what to do.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ObjectMissingError(StorageError):
    """There is no object with this key."""


class ObjectExistsError(StorageError):
    """An object with this key exists already. It stays as it is."""


class OutcomeUnknownError(StorageError):
    """It is not known whether the object was written, because the answer was lost. The call may be made again."""


class StorageDeniedError(StorageError):
    """The credentials do not allow it. The message says which permission is missing."""


class StorageFullError(StorageError):
    """There is no room left, or a quota is used up."""


class StorageGoneError(StorageError, SaidByEach):
    """The bucket, the container or the root directory does not exist. It is not made again."""


class ShortReadError(StorageError):
    """An object ends before the requested bytes."""


#: Bytes of an object, or a view of them.
Data: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One object in a list.

    Args:
        key: the key of the object.
        size: the size in bytes.
        modified: when it was last written, in Unix seconds by the clock of the storage.
    """

    key: str
    size: int
    modified: float


@runtime_checkable
class Storage(Protocol):
    """Named objects under one root: a directory, or a prefix of a bucket. A write is durable when it returns. A deleted
    object may come back after a loss of power.

    Keys are relative and separated by `/` (`check_key` says what they may contain). If `a/b` is a key, `a` is not,
    because a directory could not hold both. One instance serves several threads. A child process opens its own, even a
    forked one. `put_new` is the only call on which the safety of a run depends: there is no rename, no append and no
    lock.

    Methods raise `StorageError` and its subclasses. A storage retries temporary errors (throttling, a lost connection,
    5xx) with growing pauses, except in `put_new`. There, a second attempt would find the object of the first, and its
    refusal would look like that of another writer. Opening a storage does not contact a server.
    """

    @property
    def url(self) -> str:
        """The root as users write it, without credentials."""
        ...

    def put_new(self, key: str, data: bytes) -> None:
        """Writes `data` as an object whose `key` does not exist. It is durable when the call returns.

        Of several calls at once, one returns. It is for small objects: stores refuse the condition on large ones.

        Raises:
            ObjectExistsError: it exists already, and stays as it is.
            OutcomeUnknownError: the answer was lost. The caller reads the object, or calls again, to learn the outcome.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces the object of a `key`. Readers see either the old bytes or the new ones, `data`."""
        ...

    def put_stream(self, key: str, chunks: Iterable[Data], *, size: int) -> None:
        """Writes or replaces a large object, whole or not at all, with only a part of it in memory at a time.

        Args:
            key: the key of the object.
            chunks: its bytes, in order; another thread may iterate over them.
            size: the number of bytes.

        Raises:
            StorageError: there are more or fewer bytes. Errors of an iteration of `chunks` pass unchanged.
        """
        ...

    def get(self, key: str) -> bytes:
        """The bytes of the object of a `key`.

        Raises:
            ObjectMissingError: there is none.
        """
        ...

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """Parts of an object, in the requested order.

        Args:
            key: the key of the object.
            ranges: (first byte, byte after the last); an empty range returns no bytes.

        Raises:
            ObjectMissingError: there is no such object.
            ShortReadError: it is shorter.
        """
        ...

    def list(self, prefix: str) -> Iterator[Entry]:
        """The objects whose key begins with `prefix` and `/`, or all for an empty prefix, sorted by key.

        The list reflects every write and delete that has returned.
        """
        ...

    def now(self) -> float:
        """The Unix time by the clock that stamps `Entry.modified`."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Removes the objects of these `keys`, and no others. A missing object is not an error."""
        ...

    def close(self) -> None:
        """Ends connections. A second call does nothing."""
        ...
