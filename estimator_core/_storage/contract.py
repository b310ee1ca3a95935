"""The contract of a storage: named objects under one root, one conditional write, and its errors."""

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
    """Returns the key if every storage accepts it.

    Object stores refuse or change more keys than file systems do. Azure replaces a backslash by `/` and drops the dot
    at the end of a part. Lists of S3 cannot represent control characters. Names in a bucket have at most 1,024 bytes,
    including the prefix.

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
    """Returns whether a text is a valid key.

    Example:
        >>> is_key("a/b"), is_key("a//b")
        (True, False)
    """
    return not _fault(key)


def check_ranges(ranges: Sequence[tuple[int, int]]) -> None:
    """Refuses ranges that cannot exist in an object.

    Raises:
        ArgumentError: a range begins before 0 or after its end.

    Example:
        >>> check_ranges([(0, 4), (4, 4)])
    """
    for begin, end in ranges:
        if not 0 <= begin <= end:
            raise ArgumentError(f"({begin}, {end}) is not a range of bytes: 0 <= begin <= end must hold.")


@functools.lru_cache(maxsize=1024)
def _fault(key: str) -> str:
    """Returns the reason why a text is not a valid key; "" if it is valid."""
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
    """A storage cannot carry out a request.

    The message names the storage, the key, and what to do.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ObjectMissingError(StorageError):
    """No object has this key."""


class ObjectExistsError(StorageError):
    """An object with this key already exists. It is unchanged."""


class OutcomeUnknownError(StorageError):
    """It is unknown whether the object was written, because the answer was lost. The call may be repeated."""


class StorageDeniedError(StorageError):
    """The credentials do not allow the request. The message names the missing permission."""


class StorageFullError(StorageError):
    """The storage is full, or a quota is exhausted."""


class StorageGoneError(StorageError, SaidByEach):
    """The bucket, the container or the root directory does not exist. It is not created again."""


class ShortReadError(StorageError):
    """An object ends before the requested bytes."""


#: The bytes of an object, or a view of them.
Data: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One object in a list.

    Args:
        key: the key of the object.
        size: the size in bytes.
        modified: the time of the last write, in Unix seconds by the clock of the storage.
    """

    key: str
    size: int
    modified: float


@runtime_checkable
class Storage(Protocol):
    """Named objects under one root: a directory, or a prefix of a bucket.

    A write is durable when it returns. A deleted object may come back after a loss of power.

    Keys are relative and separated by `/` (see `check_key`). If `a/b` is a key, `a` cannot be one, because a directory
    could not contain both. Several threads may share one instance. A child process must open its own, even after a
    fork. `put_new` is the only call on which the safety of a run depends: there is no rename, no append and no lock.

    Methods raise `StorageError` and its subclasses. A storage retries temporary errors (throttling, a lost connection,
    5xx) with growing pauses, except in `put_new`. There, a second attempt would find the object of the first, as if
    another writer had written it. Opening a storage does not contact a server.
    """

    @property
    def url(self) -> str:
        """The root as users write it, without credentials."""
        ...

    def put_new(self, key: str, data: bytes) -> None:
        """Writes `data` as a new object under `key`. It is durable when the call returns.

        If several calls run at once, exactly one succeeds. Use it only for small objects, because stores refuse the
        condition for large ones.

        Raises:
            ObjectExistsError: the object already exists. It is unchanged.
            OutcomeUnknownError: the answer was lost. The caller must read the object, or repeat the call, to learn the
                outcome.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Writes `data` as the object of a `key`, or replaces the object.

        Readers see either the old bytes or the new ones.
        """
        ...

    def put_stream(self, key: str, chunks: Iterable[Data], *, size: int) -> None:
        """Writes or replaces a large object, whole or not at all, with only a part of it in memory at a time.

        Args:
            key: the key of the object.
            chunks: the bytes, in order. Another thread may iterate over them.
            size: the number of bytes.

        Raises:
            StorageError: there are more or fewer bytes than `size`. Errors raised by `chunks` pass unchanged.
        """
        ...

    def get(self, key: str) -> bytes:
        """Returns the bytes of the object of a `key`.

        Raises:
            ObjectMissingError: there is no such object.
        """
        ...

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """Returns parts of an object, in the requested order.

        Args:
            key: the key of the object.
            ranges: pairs of the first byte and the byte after the last. An empty range returns no bytes.

        Raises:
            ObjectMissingError: there is no such object.
            ShortReadError: the object is shorter.
        """
        ...

    def list(self, prefix: str) -> Iterator[Entry]:
        """Returns the objects whose key begins with `prefix` and `/`, sorted by key.

        An empty prefix returns all objects.

        The list reflects every write and delete that has returned.
        """
        ...

    def now(self) -> float:
        """Returns the Unix time by the clock of `Entry.modified`."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Removes the objects of these `keys`, and no others. A missing object is not an error."""
        ...

    def close(self) -> None:
        """Closes connections. A second call does nothing."""
        ...
