"""S3 and Azure as storages, over obstore."""

from __future__ import annotations

import contextlib
import itertools
import re
import time
import uuid
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

from estimator_core.storage import (
    Data,
    Entry,
    ObjectMissingError,
    OutcomeUnknownError,
    StorageDeniedError,
    StorageError,
    StorageGoneError,
    check_key,
    check_ranges,
    is_key,
)
from estimator_storage.store_errors import CONFLICTS, Answer, one_line, refusal, refusal_of_new
from estimator_storage.transfers import AT_ONCE, PART, Outgoing, read_ranges

#: Retries with growing pauses, after throttling, 5xx and lost connections. A put that creates an object is tried once.
#: Each pause is drawn between the first one and `base` times the previous one, so the time ends the attempts, not their
#: number.
RETRIES: Any = {
    "max_retries": 1_000,
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=10), "base": 4},
    "retry_timeout": timedelta(minutes=2),
}
ONCE: Any = {"max_retries": 0}
#: The time limits of a whole request, including the upload of a part, and of a connection attempt.
CLIENT: Any = {"timeout": "2min", "connect_timeout": "10s"}
#: The pauses after the store refused a request because of another writer of the key. A retry is safe, because the store
#: did nothing.
_CONFLICT_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
#: The largest number of parts. Multipart uploads have at most 10,000.
_MOST_PARTS = 9_000
#: The prefix of the probes of the clock. No key begins with it.
_PROBE = ".draft-"


class Builds(Protocol):
    """Creates a client of obstore."""

    def __call__(self, *, retry_config: Any, client_options: Any) -> Any:
        """Returns the client with these settings."""
        ...


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """The permissions that the credentials need, in the provider's terms.

    Args:
        read, write, list, delete: the permission for each kind of request.
    """

    read: str
    write: str
    list: str
    delete: str


class ObstoreStorage:
    """Objects below a prefix of a bucket.

    Args:
        url: the URL of the prefix, without credentials.
        build: the function that creates a client whose keys are relative to the prefix.
        permissions: the permissions that errors name.
        insecure: whether requests go without TLS.
    """

    def __init__(self, url: str, build: Builds, permissions: Permissions, *, insecure: bool) -> None:
        self._url = url
        options = {**CLIENT, "allow_http": insecure}
        self._store = build(retry_config=RETRIES, client_options=options)
        self._once = build(retry_config=ONCE, client_options=options)
        self._permissions = permissions

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"

    @property
    def url(self) -> str:
        """The scheme, the bucket and the prefix."""
        return self._url

    def put_new(self, key: str, data: bytes) -> None:
        """Writes an object that does not exist, with If-None-Match."""
        place = self._place(key)
        for pause in (*_CONFLICT_PAUSES, None):
            try:
                obstore.put(self._once, key, data, mode="create", use_multipart=False)
                return
            except (BaseError, OSError) as error:
                answer = _answer(error)
            if answer.code not in CONFLICTS or pause is None:
                raise refusal_of_new(place, self._permissions.write, answer) from None
            time.sleep(pause)

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces an object."""
        with self._explained(self._place(key), "written", self._permissions.write):
            obstore.put(self._store, key, data, use_multipart=False)

    def put_stream(self, key: str, chunks: Iterable[Data], *, size: int) -> None:
        """Writes or replaces an object in parts, eight at a time. The store shows it once it is complete."""
        outgoing = Outgoing(chunks, size, self._place(key))
        if size <= PART:
            self.put(key, b"".join(outgoing))
            return
        part = max(PART, -(-size // _MOST_PARTS))
        before = self._version_of(key)
        try:
            with self._explained(self._place(key), "written", self._permissions.write, outgoing):
                obstore.put(
                    self._store, key, iter(outgoing), use_multipart=True, chunk_size=part, max_concurrency=AT_ONCE
                )
        except OutcomeUnknownError:  # the upload is over, but this process may have lost the answer that it is complete
            after = self._version_of(key)
            if before is None or not after or after == before or after[0] != size:
                raise

    def get(self, key: str) -> bytes:
        """Returns the bytes of an object."""
        with self._explained(self._place(key), "read", self._permissions.read):
            return bytes(obstore.get(self._store, key).bytes())

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """Returns parts of an object. `get_ranges` of obstore panics if the object is shorter."""
        check_ranges(ranges)
        place = self._place(key)
        with self._explained(place, "read", self._permissions.read):
            if any(begin < end for begin, end in ranges):
                return read_ranges(
                    place,
                    ranges,
                    lambda begin, end: memoryview(obstore.get_range(self._store, key, start=begin, end=end)),
                )
            if ranges:
                obstore.head(self._store, key)
            return [b"" for _ in ranges]

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yields the objects whose names begin with the prefix and `/`."""
        place = self._place(prefix) if prefix else self._url
        with self._explained(place, "listed", self._permissions.list):
            metas = itertools.chain.from_iterable(obstore.list(self._store, prefix or None))
            found = [
                Entry(key=meta["path"], size=meta["size"], modified=meta["last_modified"].timestamp())
                for meta in metas
                if is_key(meta["path"])
            ]
        return iter(sorted(found, key=lambda entry: entry.key))

    def now(self) -> float:
        """Returns the time of the store, from an object that it writes."""
        probe = f"{_PROBE}{uuid.uuid4().hex}"
        with self._explained(f"{self._url}/{probe}", "written", self._permissions.write):
            obstore.put(self._store, probe, b"", use_multipart=False)
            try:
                return obstore.head(self._store, probe)["last_modified"].timestamp()
            finally:
                obstore.delete(self._store, probe)

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects, many per request."""
        named = [check_key(key) for key in keys]
        if not named:
            return
        try:
            with self._explained(self._url, "deleted", self._permissions.delete):
                obstore.delete(self._store, named)
        except (StorageDeniedError, StorageGoneError):
            raise
        except StorageError:
            # Azure stops at the first missing object, and obstore does not repeat its bulk request after a lost
            # connection. Single deletes are repeated, which is safe.
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(self._delete_one, named))

    def close(self) -> None:
        """Does nothing, because connections end with the client."""

    def _version_of(self, key: str) -> tuple[object, ...] | None:
        """Returns the size of an object and what changes when it is written; () without it, None if that is unknown."""
        try:
            meta = obstore.head(self._store, key)
        except FileNotFoundError:
            return ()
        except (BaseError, OSError):  # the write itself reports the error
            return None
        return meta["size"], meta["e_tag"], meta["version"], meta["last_modified"]

    def _delete_one(self, key: str) -> None:
        with (
            contextlib.suppress(ObjectMissingError),
            self._explained(self._place(key), "deleted", self._permissions.delete),
        ):
            obstore.delete(self._store, key)

    def _place(self, key: str) -> str:
        return f"{self._url}/{check_key(key)}"

    @contextlib.contextmanager
    def _explained(self, place: str, doing: str, permission: str, outgoing: Outgoing | None = None) -> Generator[None]:
        """Turns errors of obstore into those of the core. The originals are discarded, because they may hold
        signatures.
        """
        try:
            yield
        except StorageError:  # a short object
            raise
        except (BaseError, OSError) as error:
            if outgoing is not None and outgoing.error is not None:
                raise  # an error of the caller, or of the stream
            answer = _answer(error)
        else:
            return
        raise refusal(place, doing, permission, answer) from None


def _answer(error: Exception) -> Answer:
    """Returns the answer in an error of obstore. The error itself holds addresses, which may contain signatures."""
    text = str(error).partition("\n\nDebug source")[0]
    status = re.search(r"status code: (\d{3})", text)
    code = re.search(r"<Code>(\w+)</Code>", text) or re.search(r"\(code: (\w+)\)", text)
    message = re.search(r"<Message>([^<]*)", text)
    word = code[1] if code else ""
    if "CONTENT_RANGE" in text:  # for an empty object, Azurite sends nothing instead of a refusal
        return Answer(status=416, code="", text=one_line(text))
    if word.isdigit():  # a bulk delete of Azure
        return Answer(status=int(word), code="", text=one_line(text))
    return Answer(
        status=int(status[1]) if status else _status_of_kind(error),
        code=word,
        text=one_line(message[1] if message else text),
    )


def _status_of_kind(error: Exception) -> int:
    """Returns the status for the class of an error, or 0 without an answer."""
    kinds: tuple[tuple[type[Exception], int], ...] = (
        (AlreadyExistsError, 412),
        (FileNotFoundError, 404),
        (PermissionDeniedError, 403),
        (UnauthenticatedError, 401),
    )
    return next((status for kind, status in kinds if isinstance(error, kind)), 0)
