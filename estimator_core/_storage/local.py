"""A directory of this machine as a storage. Names appear by link(2), which works on network file systems too."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from estimator_core._files import DRAFT, flush, sync_directory
from estimator_core._storage.contract import (
    Data,
    Entry,
    ObjectExistsError,
    ObjectMissingError,
    ShortReadError,
    StorageDeniedError,
    StorageError,
    StorageFullError,
    StorageGoneError,
    check_key,
    check_ranges,
    is_key,
)

#: The size in bytes from which the system provides a block. For smaller blocks malloc is faster.
_LARGE = 1 << 20
#: Allocates all pages at once, if the system can: one call instead of a fault for each page.
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)


def block(size: int) -> memoryview:
    """Returns zeroed memory. malloc would keep freed memory, up to 32 MB for each thread.

    Example:
        >>> len(block(3)), len(block(2_000_000))
        (3, 2000000)
    """
    return memoryview(mmap.mmap(-1, size, flags=_FLAGS) if size >= _LARGE else bytearray(size))


#: The error numbers of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
#: Without O_NONBLOCK, opening a FIFO for reading would wait for a writer.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
#: The number of times that a directory may vanish before it is used, because another process deletes empty directories.
_ATTEMPTS = 100


class LocalStorage:
    """A directory of this machine, which must exist. It is never created.

    An object is a plain file. FIFOs, devices, and targets of links below the root are not objects.

    Args:
        root: the directory.
        ready: a function that is called before the name of a new object appears, after its bytes are flushed. If it
            raises an error, the object does not appear.

    Raises:
        StorageGoneError: the directory does not exist.

    Example:
        >>> import tempfile
        >>> storage = LocalStorage(tempfile.mkdtemp())
        >>> storage.put_new("journal/0", b"first")
        >>> storage.get("journal/0")
        b'first'
    """

    def __init__(self, root: str | os.PathLike[str], *, ready: Callable[[], None] = lambda: None) -> None:
        self._root, self._ready = Path(root).absolute(), ready
        self._require_root()

    @property
    def url(self) -> str:
        """The path of the directory."""
        return str(self._root)

    def put_new(self, key: str, data: bytes) -> None:
        """Writes a file that does not exist, and flushes it and its name to the disk."""
        with self._explained(key), self._draft(key, [data]) as (draft, path):
            self._ready()
            try:
                os.link(draft, path)
            except FileExistsError:
                raise ObjectExistsError(f"{self.url}: {key} exists already.") from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                _create(path, data, key, self.url)
            sync_directory(path.parent)

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces a file."""
        self.put_stream(key, [data], size=len(data))

    def put_stream(self, key: str, chunks: Iterable[Data], *, size: int) -> None:
        """Writes or replaces a file part by part, under a temporary name until it is complete."""
        with self._explained(key), self._draft(key, chunks) as (draft, path):
            written = draft.stat().st_size
            if written != size:
                raise StorageError(f"{self.url}: {key} should have {size} bytes, but {written} were supplied.")
            os.replace(draft, path)
            sync_directory(path.parent)

    def get(self, key: str) -> bytes:
        """Returns the bytes of a file."""
        with self._explained(key), self._opened(key) as descriptor:
            return bytes(self._part(descriptor, key, 0, os.fstat(descriptor).st_size))

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """Returns parts of a file."""
        check_ranges(ranges)
        with self._explained(key), self._opened(key) as descriptor:
            return [self._part(descriptor, key, begin, end) for begin, end in ranges]

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yields the plain files below a directory whose names can be keys, sorted by key."""
        self._require_root()
        found: list[Entry] = []
        with self._explained(prefix or "the root"):
            for directory, _, names in os.walk(self._path(prefix) if prefix else self._root, onerror=_raise):
                below = Path(directory).relative_to(self._root).as_posix()
                for name in names:  # without paths, which would take most of the time of a long list
                    key = name if below == "." else f"{below}/{name}"
                    with contextlib.suppress(FileNotFoundError):  # removed after its name was read
                        status = os.lstat(os.path.join(directory, name))
                        if stat.S_ISREG(status.st_mode) and is_key(key):
                            found.append(Entry(key=key, size=status.st_size, modified=status.st_mtime))
        return iter(sorted(found, key=lambda entry: entry.key))

    def now(self) -> float:
        """Returns the modification time that the file system assigns to a file written now."""
        with self._explained("the clock"):
            probe = self._root / f"{DRAFT}{uuid.uuid4().hex}"
            probe.touch(exist_ok=False)
            try:
                return probe.stat().st_mtime
            finally:
                probe.unlink(missing_ok=True)

    def delete(self, keys: Iterable[str]) -> None:
        """Removes files, and directories that become empty."""
        for key in keys:
            with self._explained(key):
                path = self._path(key)
                with contextlib.suppress(NotADirectoryError):  # a part of the key is a file, so the key does not exist
                    path.unlink(missing_ok=True)
                for parent in path.parents:
                    if parent == self._root or not _removed_if_empty(parent):
                        break

    def close(self) -> None:
        """Does nothing, because nothing is open."""

    def _path(self, key: str) -> Path:
        """Returns the path of a key.

        Raises:
            StorageError: a part of the path is a link, which may lead anywhere.
        """
        path = os.fspath(self._root)  # not `url`, because a subclass may have its own URL
        for part in check_key(key).split("/"):
            path = os.path.join(path, part)
            if os.path.islink(path):
                raise StorageError(f"{self.url}: {key} is a link or below one; links below the root are refused.")
        return Path(path)

    @contextlib.contextmanager
    def _opened(self, key: str) -> Generator[int]:
        """Yields the descriptor of a plain file."""
        descriptor = os.open(self._path(key), _READ)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise FileNotFoundError  # there are keys below it, but this key does not exist
            if not stat.S_ISREG(mode):
                raise StorageError(f"{self.url}: {key} is not a plain file. Remove it.")
            yield descriptor
        finally:
            os.close(descriptor)

    def _require_root(self) -> None:
        if not self._root.is_dir():
            raise StorageGoneError(f"{self.url} does not exist: the directory was removed, renamed or unmounted.")

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
        """Yields a flushed file under a temporary name, and the path of the key. The draft is removed at the end."""
        path = self._path(key)
        draft = path.parent / f"{DRAFT}{uuid.uuid4().hex}"
        try:
            with self._created(draft) as file:
                for chunk in chunks:
                    file.write(chunk)
            flush(draft)
            yield draft, path
        finally:
            draft.unlink(missing_ok=True)

    def _created(self, draft: Path) -> BinaryIO:
        """Creates a new file. Its directories are created below the root, but never the root itself."""
        below_root = [parent for parent in reversed(draft.parents) if self._root in parent.parents]
        for left in reversed(range(_ATTEMPTS)):
            self._require_root()
            try:
                for parent in below_root:
                    with contextlib.suppress(FileExistsError):
                        parent.mkdir()
                return open(draft, "xb")
            except FileNotFoundError:
                if not left:
                    raise
        raise AssertionError("unreachable")

    @contextlib.contextmanager
    def _explained(self, key: str) -> Generator[None]:
        """Turns errors of the system into the storage's own errors."""
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


def _raise(error: OSError) -> None:
    """Raises the error of an unreadable directory, for `os.walk`. A directory that does not exist counts as empty."""
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error


def _create(path: Path, data: bytes, key: str, url: str) -> None:
    """Creates a file on a file system without hard links.

    Its name appears before its bytes, so a crash may leave a part.
    """
    try:
        with open(path, "xb") as file:
            file.write(data)
        flush(path)
    except FileExistsError:
        raise ObjectExistsError(f"{url}: {key} exists already.") from None


def _removed_if_empty(directory: Path) -> bool:
    try:
        directory.rmdir()
    except OSError:
        return False
    return True
