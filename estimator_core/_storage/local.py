"""A directory of this machine as a storage: names appear by link(2), which works on network file systems too."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path

from estimator_core._storage.contract import Data, Entry
from estimator_core._storage.errors import (
    ObjectExistsError,
    ObjectMissingError,
    ShortReadError,
    StorageDeniedError,
    StorageError,
    StorageFullError,
    StorageGoneError,
)
from estimator_core._storage.keys import check_key
from estimator_core._storage.memory import block

#: Beginning of the names of files under way; no key of a list begins a part with it.
DRAFT = ".draft-"
#: What file systems answer that have no hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class LocalStorage:
    """A directory of this machine, which must exist: it is never made, nor made again.

    Args:
        root: the directory.

    Raises:
        StorageGoneError: there is no such directory.

    Example:
        >>> import tempfile
        >>> storage = LocalStorage(tempfile.mkdtemp())
        >>> storage.put_new("journal/0", b"first")
        >>> storage.get("journal/0")
        b'first'
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root).absolute()
        self._require_root()

    @property
    def url(self) -> str:
        """The path of the directory."""
        return str(self._root)

    def put_new(self, key: str, data: bytes) -> None:
        """Writes a file that does not exist, and flushes it and its name to the disk."""
        with self._explained(key), self._draft(key, [data]) as (draft, path):
            try:
                os.link(draft, path)
            except FileExistsError:
                raise ObjectExistsError(f"{self.url}: {key} exists already.") from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                _create(path, data, key, self.url)
            _flush_names(path.parent)

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces a file."""
        self.put_stream(key, [data], size=len(data))

    def put_stream(self, key: str, chunks: Iterable[Data], *, size: int) -> None:
        """Writes or replaces a file part by part, under a name of its own until it is whole."""
        with self._explained(key), self._draft(key, chunks) as (draft, path):
            written = draft.stat().st_size
            if written != size:
                raise StorageError(f"{self.url}: {key} should have {size} bytes; {written} were handed over.")
            os.replace(draft, path)
            _flush_names(path.parent)

    def get(self, key: str) -> bytes:
        """The bytes of a file."""
        with self._explained(key):
            return self._path(key).read_bytes()

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """Parts of a file."""
        with self._explained(key), open(self._path(key), "rb") as file:
            return [self._part(file.fileno(), key, begin, end) for begin, end in ranges]

    def list(self, prefix: str) -> Iterator[Entry]:
        """The files below a directory, sorted by key."""
        self._require_root()
        base = self._path(prefix) if prefix else self._root
        found: list[Entry] = []
        for directory, _, names in os.walk(base):
            for name in names:
                path = Path(directory, name)
                with contextlib.suppress(FileNotFoundError):  # removed since its name was read
                    if not name.startswith(DRAFT):
                        stat = path.stat()
                        key = path.relative_to(self._root).as_posix()
                        found.append(Entry(key=key, size=stat.st_size, modified=stat.st_mtime))
        return iter(sorted(found, key=lambda entry: entry.key))

    def now(self) -> float:
        """The time that the file system gives a file written now."""
        with self._explained("the clock"):
            probe = self._root / f"{DRAFT}{uuid.uuid4().hex}"
            probe.touch(exist_ok=False)
            try:
                return probe.stat().st_mtime
            finally:
                probe.unlink(missing_ok=True)

    def delete(self, keys: Iterable[str]) -> None:
        """Removes files, and directories that become empty by it."""
        for key in keys:
            with self._explained(key):
                path = self._path(key)
                path.unlink(missing_ok=True)
                for parent in path.parents:
                    if parent == self._root or not _removed_if_empty(parent):
                        break

    def close(self) -> None:
        """Holds nothing open."""

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    def _require_root(self) -> None:
        if not self._root.is_dir():
            raise StorageGoneError(f"{self.url} is not there: the directory was removed, renamed or unmounted.")

    def _part(self, descriptor: int, key: str, begin: int, end: int) -> Data:
        size = end - begin
        if begin < end and os.fstat(descriptor).st_size < end:
            raise ShortReadError(f"{self.url}: {key} ends before byte {end}.")
        part = block(max(size, 0))
        read = 0
        while read < size:
            count = os.preadv(descriptor, [part[read:]], begin + read)
            if not count:
                raise ShortReadError(f"{self.url}: {key} ends before byte {end}.")
            read += count
        return part

    @contextlib.contextmanager
    def _draft(self, key: str, chunks: Iterable[Data]) -> Generator[tuple[Path, Path]]:
        """A flushed file under a name of its own, and the path of the key; the draft is gone at the end."""
        self._require_root()
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.parent / f"{DRAFT}{uuid.uuid4().hex}"
        try:
            with open(draft, "xb") as file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            yield draft, path
        finally:
            draft.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _explained(self, key: str) -> Generator[None]:
        """Turns what the system raises into the storage's own errors."""
        try:
            yield
        except StorageError:
            raise
        except (FileNotFoundError, NotADirectoryError):
            self._require_root()
            raise ObjectMissingError(f"{self.url}: there is no {key}.") from None
        except PermissionError as error:
            raise StorageDeniedError(f"{self.url}: this user may not access {key} ({error.strerror}).") from error
        except OSError as error:
            kind = StorageFullError if error.errno in (errno.ENOSPC, errno.EDQUOT) else StorageError
            raise kind(f"{self.url}: {key}: {error.strerror or error}.") from error


def _create(path: Path, data: bytes, key: str, url: str) -> None:
    """A new file on a file system without hard links: the name comes before the bytes, so a crash can leave a part."""
    try:
        with open(path, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise ObjectExistsError(f"{url}: {key} exists already.") from None


def _flush_names(directory: Path) -> None:
    """Flushes the names in a directory to the disk, where the system can do that."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _removed_if_empty(directory: Path) -> bool:
    try:
        directory.rmdir()
    except OSError:
        return False
    return True
