"""The contract of a storage: named objects under one root, one conditional write, and what it raises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from estimator_core.errors import EstimatorError


class StorageError(EstimatorError, OSError):
    """A storage cannot do what it was asked to do.

    The message names the storage, the key, and what to do.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ObjectMissingError(StorageError):
    """There is no object of this key."""


class ObjectExistsError(StorageError):
    """There is an object of this key already; it stays as it is."""


class OutcomeUnknownError(StorageError):
    """Whether the object was written is not known: the answer was lost. The same call may be made again."""


class StorageDeniedError(StorageError):
    """The credentials do not allow it; the message says which permission is missing."""


class StorageFullError(StorageError):
    """There is no room left, or a quota is used up."""


class StorageGoneError(StorageError):
    """The bucket, the container or the root directory is not there. It is not made again."""


class ShortReadError(StorageError):
    """An object ends before the bytes that were asked for."""


#: Bytes of an object, or a view of them.
Data: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One object in a list.

    Args:
        key: of the object.
        size: in bytes.
        modified: when it was last written, in Unix seconds by the clock of the storage.
    """

    key: str
    size: int
    modified: float


@runtime_checkable
class Storage(Protocol):
    """Named objects under one root: a directory, or a prefix of a bucket. What a write has written is durable when it
    returns; what a delete has removed may come back after a loss of power.

    Keys are relative and separated by `/` (`check_key` says what may stand in them); where `a/b` is a key, `a` is none:
    in a directory it could not be. One instance serves several threads. A child process opens its own, a forked one
    too. `put_new` is the only call on which the safety of a run depends: there is no rename, no append and no lock.

    Methods raise `StorageError` and its subclasses. A storage retries what may pass (throttling, a lost connection,
    5xx) with growing pauses, except in `put_new`: a second attempt would meet the object of the first, and its refusal
    would look like another writer's. Opening asks nothing of a server.
    """

    @property
    def url(self) -> str:
        """The root as users write it, without credentials."""
        ...

    def put_new(self, key: str, data: bytes) -> None:
        """Writes an object that does not exist; it is durable when the call returns.

        Of several calls at once, one returns. It is for small objects: stores refuse the condition on large ones.

        Raises:
            ObjectExistsError: there is one; it stays as it is.
            OutcomeUnknownError: the answer was lost. The caller reads the object, or calls again, to learn the outcome.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces an object: readers see the old bytes or the new ones."""
        ...

    def put_stream(self, key: str, chunks: Iterable[Data], *, size: int) -> None:
        """Writes or replaces a large object, of which only a part is in memory at a time: whole, or not at all.

        Args:
            key: of the object.
            chunks: its bytes, in order; another thread may ask for them.
            size: how many bytes there are.

        Raises:
            StorageError: there are more or fewer bytes; what an iteration of `chunks` raises goes through as it is.
        """
        ...

    def get(self, key: str) -> bytes:
        """The bytes of an object.

        Raises:
            ObjectMissingError: there is none.
        """
        ...

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """Parts of an object, in the order asked for.

        Args:
            key: of the object.
            ranges: (first byte, byte after the last); an empty one gives no bytes.

        Raises:
            ObjectMissingError: there is no such object.
            ShortReadError: it is shorter.
        """
        ...

    def list(self, prefix: str) -> Iterator[Entry]:
        """The objects whose key begins with `prefix` and `/`, or all for an empty prefix, sorted by key.

        Every write and delete that has returned is seen.
        """
        ...

    def now(self) -> float:
        """The Unix time by the clock that stamps `Entry.modified`."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects; one that does not exist is no error."""
        ...

    def close(self) -> None:
        """Ends connections. A second call does nothing."""
        ...
