"""Copies directories between this machine and a storage."""

from __future__ import annotations

import logging
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from estimator_core.errors import ArgumentError
from estimator_core.storage import Data, Entry, ObjectMissingError, ShortReadError, Storage, check_key

Item = TypeVar("Item")
_log = logging.getLogger("estimator_core.storage")
#: The number of bytes of a file that are in memory at a time.
_PART = 8 << 20
#: The number of files that are transferred at a time.
_TOGETHER = 8
_REPORT_SECS = 10.0


def upload_directory(storage: Storage, prefix: str, directory: Path, *, last: str = "", without: str = "") -> list[str]:
    """Writes the files of a directory as objects below a prefix.

    Args:
        storage: the destination.
        prefix: the key of the directory.
        directory: the directory. It may hold only plain files and directories.
        last: the path of a file that is written after all others, relative to the directory, because its presence marks
            the directory as complete.
        without: an ending. Files with this ending are left out.

    Returns:
        The keys, sorted.

    Raises:
        ArgumentError: there is a link, a FIFO or a device.
        StorageError: an object cannot be written. Objects that were written before remain.

    Example:
        >>> from estimator_core.storage import LocalStorage
        >>> import tempfile
        >>> here, there = Path(tempfile.mkdtemp()), LocalStorage(tempfile.mkdtemp())
        >>> _ = (here / "a.txt").write_text("text")
        >>> upload_directory(there, "copies/1", here)
        ['copies/1/a.txt']
    """
    files = {f"{prefix}/{path.relative_to(directory).as_posix()}": path for path in _plain_files(directory)}
    files = {key: path for key, path in files.items() if not without or not key.endswith(without)}
    progress = _Progress(f"Writing {storage.url}/{prefix}", sum(path.stat().st_size for path in files.values()))

    def upload(key: str) -> None:
        size = files[key].stat().st_size
        storage.put_stream(key, progress.counted(_parts_of(files[key])), size=size)

    sealing = [key for key in files if key == f"{prefix}/{last}"]
    _each(upload, sorted(files.keys() - set(sealing)))
    _each(upload, sealing)
    return sorted(files)


def download_directory(storage: Storage, prefix: str, directory: Path, *, without: str = "") -> Path:
    """Reads the objects below a prefix into a directory, which appears either complete or not at all.

    Args:
        storage: the source.
        prefix: the key of the directory. "" means everything.
        directory: the path of the copy. It must not exist.
        without: an ending. Objects with this ending are left out.

    Returns:
        The directory.

    Raises:
        ObjectMissingError: there is nothing below the prefix.
        StorageError: an object cannot be read.
    """
    entries = [entry for entry in storage.list(prefix) if not without or not entry.key.endswith(without)]
    if not entries:
        raise ObjectMissingError(f"{storage.url}: there is nothing below {prefix or 'it'}.")
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = directory.with_name(f".draft-{directory.name}-{uuid.uuid4().hex[:8]}")
    progress = _Progress(f"Reading {storage.url}/{prefix}", sum(entry.size for entry in entries))
    try:
        _each(lambda entry: _download(storage, entry, draft / _below(entry.key, prefix), progress), entries)
        draft.rename(directory)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return directory


def upload_file(storage: Storage, key: str, path: Path, *, size: int) -> None:
    """Writes the first `size` bytes of a file as an object. The file may grow during the upload."""
    storage.put_stream(key, _first_bytes(path, size), size=size)


def download_file(storage: Storage, entry: Entry, path: Path) -> None:
    """Reads an object into a file. The file must not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as file:
        for part in _ranges_of(storage, entry):
            file.write(part)


def _first_bytes(path: Path, size: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while size > 0 and (part := file.read(min(size, _PART))):
            size -= len(part)
            yield part


def _download(storage: Storage, entry: Entry, path: Path, progress: _Progress) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as file:
        for part in progress.counted(_ranges_of(storage, entry)):
            file.write(part)


def _ranges_of(storage: Storage, entry: Entry) -> Iterator[Data]:
    for begin in range(0, entry.size, _PART):
        end = min(begin + _PART, entry.size)
        (part,) = storage.get_ranges(entry.key, [(begin, end)])
        if len(part) != end - begin:
            raise ShortReadError(f"{storage.url}: {entry.key} ends before byte {end}.")
        yield part


def _below(key: str, prefix: str) -> str:
    """Returns the key relative to the prefix. Refuses keys with `..`, which would write outside of the directory."""
    return check_key(key.removeprefix(f"{prefix}/") if prefix else key)


def _plain_files(directory: Path) -> Iterator[Path]:
    for found, _, names in os.walk(directory):
        for name in names:
            path = Path(found, name)
            if path.is_symlink() or not path.is_file():
                raise ArgumentError(f"{path} is not a plain file: links, FIFOs and devices are not copied.")
            yield path


def _parts_of(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while part := file.read(_PART):
            yield part


def _each(work: Callable[[Item], None], items: Sequence[Item]) -> None:
    """Calls `work` for each item, several at a time. Raises the first error after the calls in progress have ended."""
    with ThreadPoolExecutor(min(_TOGETHER, len(items) or 1)) as pool:
        for done in [pool.submit(work, item) for item in items]:
            done.result()


class _Progress:
    """Logs the progress and the rate of a long transfer every ten seconds.

    Args:
        what: the transfer, for messages.
        total: the number of bytes.
    """

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._began = self._said = time.monotonic()

    def counted(self, parts: Iterator[Data]) -> Iterator[Data]:
        """Yields the parts, and counts their bytes."""
        for part in parts:
            yield part
            self._done += len(part)
            now = time.monotonic()
            if now - self._said > _REPORT_SECS:
                self._said = now
                rate = self._done / (now - self._began) / 1e6
                _log.info("%s: %.0f of %.0f MB, %.1f MB/s", self._what, self._done / 1e6, self._total / 1e6, rate)
