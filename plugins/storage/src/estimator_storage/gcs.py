"""Google Cloud Storage, over its JSON interface, because the protocol of obstore cannot be tested without a bucket."""

from __future__ import annotations

import contextlib
import io
import os
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from estimator_core.errors import ArgumentError
from estimator_core.storage import (
    Data,
    Entry,
    ObjectMissingError,
    StorageError,
    check_key,
    check_ranges,
    is_key,
)
from estimator_storage.locations import parse
from estimator_storage.store_errors import Answer, one_line, refusal, refusal_of_new
from estimator_storage.transfers import AT_ONCE, PART, Outgoing, read_ranges

_PROBE = ".draft-"
_Value = TypeVar("_Value")


def open_gcs(url: str, *, options: Mapping[str, Any]) -> GcsStorage:
    """Returns the storage at `gs://bucket/prefix`.

    Credentials are the application default credentials of Google. `STORAGE_EMULATOR_HOST` is used without credentials.

    Args:
        url: the bucket and the prefix.
        options: the options of the plugin. `gcs_endpoint` is a server other than Google's.

    Raises:
        ArgumentError: google-cloud-storage is not installed, or the URL or the settings cannot be used.
    """
    try:
        from google.auth.credentials import AnonymousCredentials  # pyright: ignore[reportMissingImports]
        from google.auth.exceptions import GoogleAuthError  # pyright: ignore[reportMissingImports]
        from google.cloud.storage import Client  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise ArgumentError(
            f"gs:// needs google-cloud-storage (there is no {error.name}): pip install 'estimator-storage[gcs]'."
        ) from error
    location = parse(url)
    endpoint = str(options.get("gcs_endpoint", "")) or os.environ.get("STORAGE_EMULATOR_HOST", "")
    how: dict[str, Any] = {"client_options": {"api_endpoint": endpoint}} if endpoint else {}
    if endpoint.startswith("http://"):  # a token must not travel without TLS
        how["credentials"] = AnonymousCredentials()
    try:
        client = Client(project=os.environ.get("GOOGLE_CLOUD_PROJECT", "none"), **how)
    except (GoogleAuthError, OSError, ValueError) as error:
        raise ArgumentError(
            f"{location.url}: Google Cloud Storage cannot be used with these settings: {one_line(str(error))}"
        ) from None
    return GcsStorage(location.url, client.bucket(location.bucket), location.prefix)


class GcsStorage:
    """Objects below a prefix of a bucket.

    Args:
        url: the URL of the prefix.
        bucket: a bucket of google-cloud-storage, with its client. The package is optional, so its types have no names.
        prefix: the prefix of the names of all objects.
    """

    def __init__(self, url: str, bucket: Any, prefix: str) -> None:
        from google.cloud.storage.retry import DEFAULT_RETRY  # pyright: ignore[reportMissingImports]

        self._url, self._bucket = url, bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._retry: Any = DEFAULT_RETRY.with_timeout(120)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"

    @property
    def url(self) -> str:
        """The scheme, the bucket and the prefix."""
        return self._url

    def put_new(self, key: str, data: bytes) -> None:
        """Writes an object that does not exist, with ifGenerationMatch=0, in one attempt."""
        blob = self._blob(key)
        answer = _attempted(lambda: blob.upload_from_string(data, if_generation_match=0, retry=None))[1]
        if answer is not None:
            raise refusal_of_new(self._place(key), "storage.objects.create", answer)

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces an object."""
        blob = self._blob(key)
        with self._explained(self._place(key), "written", "storage.objects.create and storage.objects.delete"):
            blob.upload_from_string(data, retry=self._retry)

    def put_stream(self, key: str, chunks: Iterable[Data], *, size: int) -> None:
        """Writes or replaces an object by a resumable upload. The store shows it once it is complete."""
        blob, outgoing = self._blob(key), Outgoing(chunks, size, self._place(key))
        if size <= PART:
            self.put(key, b"".join(outgoing))
            return
        blob.chunk_size = 4 * PART  # the client sends chunks one after the other, so larger ones wait less
        permission = "storage.objects.create and storage.objects.delete"
        with self._explained(self._place(key), "written", permission, outgoing):
            blob.upload_from_file(_Reader(iter(outgoing)), size=size, retry=self._retry)

    def get(self, key: str) -> bytes:
        """Returns the bytes of an object."""
        blob = self._blob(key)
        with self._explained(self._place(key), "read", "storage.objects.get"):
            return blob.download_as_bytes(retry=self._retry)

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """Returns parts of an object, with several requests at a time."""
        check_ranges(ranges)
        place, blob = self._place(key), self._blob(key)
        with self._explained(place, "read", "storage.objects.get"):
            if any(begin < end for begin, end in ranges):
                return read_ranges(
                    place,
                    ranges,
                    lambda begin, end: blob.download_as_bytes(
                        start=begin, end=end - 1, retry=self._retry, checksum=None, single_shot_download=True
                    ),
                )
            if ranges:
                blob.reload(retry=self._retry)
            return [b"" for _ in ranges]

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yields the objects whose names begin with the prefix and `/`."""
        place, whole = self._url, self._prefix
        if prefix:
            place, whole = self._place(prefix), f"{self._prefix}{prefix}/"
        with self._explained(place, "listed", "storage.objects.list"):
            found = [
                Entry(key=key, size=blob.size or 0, modified=blob.updated.timestamp())
                for blob in self._bucket.list_blobs(prefix=whole, retry=self._retry)
                if is_key(key := blob.name.removeprefix(self._prefix))
            ]
        return iter(sorted(found, key=lambda entry: entry.key))

    def now(self) -> float:
        """Returns the time of the store, from an object that it writes."""
        probe = self._bucket.blob(f"{self._prefix}{_PROBE}{uuid.uuid4().hex}")
        with self._explained(self._url, "written", "storage.objects.create, get and delete"):
            probe.upload_from_string(b"", retry=self._retry)
            try:
                probe.reload(retry=self._retry)
                return probe.updated.timestamp()
            finally:
                probe.delete(retry=self._retry)

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects, several at a time."""
        named = [check_key(key) for key in keys]
        if named:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(self._delete_one, named))

    def close(self) -> None:
        """Ends the connections of the client."""
        self._bucket.client.close()

    def _require_bucket(self) -> None:
        """Requests one name of a list, which raises an error if the bucket is missing."""
        with self._explained(self._url, "listed", "storage.objects.list"):
            next(iter(self._bucket.list_blobs(prefix=self._prefix, max_results=1, retry=self._retry)), None)

    def _delete_one(self, key: str) -> None:
        with (
            contextlib.suppress(ObjectMissingError),
            self._explained(self._place(key), "deleted", "storage.objects.delete"),
        ):
            self._blob(key).delete(retry=self._retry)

    def _blob(self, key: str) -> Any:
        return self._bucket.blob(f"{self._prefix}{check_key(key)}")

    def _place(self, key: str) -> str:
        return f"{self._url}/{check_key(key)}"

    @contextlib.contextmanager
    def _explained(self, place: str, doing: str, permission: str, outgoing: Outgoing | None = None) -> Generator[None]:
        """Turns the errors of the client into those of the core."""
        try:
            yield
        except StorageError:
            raise
        except Exception as error:
            if outgoing is not None and outgoing.error is not None:
                raise outgoing.error from None
            answer = _answer(error)
            if answer is None:
                raise
        else:
            return
        if answer.status == 404 and not answer.code and doing == "read":
            self._require_bucket()  # raises if the bucket itself is missing
        raise refusal(place, doing, permission, answer) from None


class _Reader(io.RawIOBase):
    """A stream of pieces as a file that the client reads from front to end.

    Args:
        pieces: the pieces, in order.
    """

    def __init__(self, pieces: Iterator[memoryview]) -> None:
        self._pieces, self._left, self._at = pieces, memoryview(b""), 0

    def readable(self) -> bool:
        """Returns True."""
        return True

    def tell(self) -> int:
        """Returns the number of bytes read so far."""
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """Returns this many bytes, or all that are left. Fewer bytes mean the end."""
        parts: list[memoryview] = []
        wanted = size if size >= 0 else None
        while wanted is None or wanted > 0:
            if not len(self._left):
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._left = piece
            part = self._left[:wanted]
            self._left = self._left[len(part) :]
            parts.append(part)
            wanted = None if wanted is None else wanted - len(part)
        data = b"".join(parts)
        self._at += len(data)
        return data


def _attempted(call: Callable[[], _Value]) -> tuple[_Value | None, Answer | None]:
    """Returns the result of a call, or the unsuccessful answer."""
    try:
        return call(), None
    except Exception as error:
        answer = _answer(error)
        if answer is None:
            raise
        return None, answer


def _answer(error: Any) -> Answer | None:
    """Returns the answer in an error of the client, or None for any other error."""
    from google.api_core.exceptions import GoogleAPICallError, RetryError  # pyright: ignore[reportMissingImports]
    from google.auth.exceptions import GoogleAuthError  # pyright: ignore[reportMissingImports]
    from google.cloud.storage.exceptions import InvalidResponse  # pyright: ignore[reportMissingImports]
    from requests import RequestException  # pyright: ignore[reportMissingModuleSource]

    if isinstance(error, RetryError) and isinstance(error.cause, Exception):
        return _answer(error.cause)
    if isinstance(error, GoogleAPICallError):
        text = one_line(error.message or "")
        return Answer(status=int(error.code or 0), code=_code(text), text=text)
    if isinstance(error, InvalidResponse):
        text = one_line(str(error.response.text or error.args[0]))
        return Answer(status=int(error.response.status_code), code=_code(text), text=text)
    if isinstance(error, GoogleAuthError):
        return Answer(status=401, code="", text=one_line(str(error)))
    if isinstance(error, (RequestException, ConnectionError, TimeoutError)):
        return Answer(status=0, code="", text=one_line(str(error)))
    return None


def _code(text: str) -> str:
    """Returns the code for a message of the store, or "" for an unknown message."""
    words = {"bucket does not exist": "NoSuchBucket", "no such object": "NoSuchObject"}
    return next((word for sentence, word in words.items() if sentence in text.lower()), "")
