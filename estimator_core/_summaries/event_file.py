"""TensorBoard event files, written by tensorboardX.

`tensorboardX.SummaryWriter` passes its events to a process queue that its `flush` does not drain. A point could be lost
although a later checkpoint was committed. The `flush` of the layer below always waits for the disk. This module
therefore writes the file: tensorboardX builds the summaries and their checksums, and the calling thread writes every
record. The code that records how many bytes count waits for the disk
(`estimator_core._journal.derived.sync_event_files`).

A run that is killed at step 130 and resumed from its checkpoint of step 100 writes the points 101 ... 130 a second
time. `open_summary_writer(directory, resume_step=100)` therefore begins its file with `SessionLog.START` events of step
101. TensorBoard's Python readers drop the points from that step on in earlier files of the directory. Its fast data
server (Rust) ignores these events. It drops a tag's later points when an earlier step of that tag follows. The result
is the same for every tag that the resumed run writes again. Points up to step 100 are complete, because summaries are
flushed before a checkpoint is committed.

Readers process the files of a directory in the order of their names. A name contains a number, one more than the
largest existing number, and the epoch of the run (`estimator_core._journal`), so the order does not depend on a clock.
"""

from __future__ import annotations

import logging
import os
import re
import struct
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, final
from weakref import WeakValueDictionary

import numpy as np

from estimator_core.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_NUMBERED: Final = re.compile(r"events\.out\.tfevents\.(\d{10})")
#: The largest number of values that training collects before it encodes them, and the seconds that the first may wait.
_MOST_WAITING, _MOST_WAITING_SECS = 32, 0.5
_open_files: WeakValueDictionary[Path, EventFile] = WeakValueDictionary()
_open_files_lock = threading.Lock()
_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class Written:
    """An event file, up to the last flushed byte."""

    path: Path
    size: int


def event_files_below(root: Path) -> list[EventFile]:
    """Returns the writers of this process whose directory is `root` or below it."""
    root = root.resolve()
    with _open_files_lock:
        return [file for path, file in _open_files.items() if path == root or root in path.parents]


def open_summary_writer(
    directory: str | os.PathLike[str], *, resume_step: int | None = None, epoch: Callable[[], int] | None = None
) -> EventFile:
    """Returns the summary writer of a directory: the same object for every caller in this process.

    Nothing is created before the first point is written.

    Args:
        directory: the directory of the event file. It is created when needed.
        resume_step: the global step from which a run starts. Points of later steps from a killed run disappear from
            TensorBoard. None (the default) keeps everything.
        epoch: a function that returns the epoch of the writing run when the file is created. None: the function of the
            last call.

    Raises:
        ArgumentError: a file occupies the path of the directory.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     writer = open_summary_writer(directory)
        ...     writer.scalar("loss", 0.5, 1)
        ...     writer.close()
        ...     len(os.listdir(directory))
        1
    """
    path = Path(directory).expanduser().resolve()
    if path.exists() and not path.is_dir():
        raise ArgumentError(f"Summaries cannot be written to {path}: it is a file. Give a directory.")
    with _open_files_lock:
        event_file = _open_files.get(path)
        if event_file is None:
            event_file = _open_files[path] = EventFile(path)
    event_file.begin()
    if epoch is not None:
        event_file.epoch = epoch
    if resume_step is not None:
        event_file.resume(resume_step)
    return event_file


@final
class EventFile:
    """A TensorBoard event file, which is an `estimator_core.hooks.SummaryWriter`; see `open_summary_writer`.

    It is safe to use from several threads.
    """

    def __init__(self, directory: Path) -> None:
        self.directory: Final = directory
        self.epoch: Callable[[], int] = lambda: 0
        #: Whether new files are locked while they are open, so that no other process treats them as abandoned.
        self.held = False
        self._existed: bool | None = None
        self._lock = threading.RLock()
        self._file: Any = None
        self._path = directory
        self._inode = 0
        self._written: dict[Path, int] = {}
        self._resume_step: int | None = None
        self._waiting: list[tuple[str, float, int, float]] = []
        self._collecting = self._dirty = False

    def begin(self) -> None:
        """Marks the begin of a use: from now on, the directory is not created again if it is removed."""
        if self._existed is None:
            self._existed = self.directory.is_dir()

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Writes one number (any value that `float()` accepts)."""
        with self._lock:
            self._waiting.append((tag, float(value), step, time.time()))
            if not self._collecting:
                self.encode()

    @contextmanager
    def collecting(self) -> Generator[None]:
        """Makes numbers wait inside the block for `encode_if_due`, `flush`, `close` or another kind of point.

        A training run encodes them while the device computes the next step. Otherwise each would delay it by 40
        microseconds.
        """
        self._collecting = True
        try:
            yield
        except BaseException:
            self._collecting = False
            with suppress(OSError):  # this must not hide the earlier error
                self.encode()
            raise
        self._collecting = False
        self.encode()

    def encode_if_due(self) -> bool:
        """Writes the waiting numbers if there are many, or if the first has waited for half a second.

        Returns whether all numbers are written.

        For fast training, encoding one number at a time costs ten times as much as encoding many, because the cache is
        cold.
        """
        waiting = self._waiting
        if len(waiting) >= _MOST_WAITING or (waiting and time.time() - waiting[0][3] > _MOST_WAITING_SECS):
            self.encode()
        return not self._waiting

    def encode(self) -> None:
        """Writes the waiting numbers."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            for tag, value, step, wall_time in waiting:
                summary = _protocol().Summary
                point = summary(value=[summary.Value(tag=_clean_tag(tag), simple_value=value)])
                self._append(_events().Event(wall_time=wall_time, step=int(step), summary=point))

    def histogram(self, tag: str, values: ArrayLike, step: int) -> None:
        """Writes the distribution of an array of any shape.

        Values that are not finite are skipped. Nothing is written if no values remain.
        """
        flat = np.asarray(values, np.float64).ravel()
        flat = flat[np.isfinite(flat)]
        if flat.size:
            self._write(_summaries().histogram(tag, flat, bins=_histogram_bins()), step)

    def image(self, tag: str, image: ArrayLike, step: int) -> None:
        """Writes one image.

        Args:
            tag: the tag of the image.
            image: an image of height x width x channels (1, 3 or 4), uint8, or float in [0, 1] (clipped).
            step: the global step.
        """
        pixels = np.asarray(image)
        if pixels.ndim != 3 or pixels.shape[-1] not in (1, 3, 4):
            raise ArgumentError(
                f"Image summary {tag!r}: expected height x width x 1, 3 or 4 channels, got the shape {pixels.shape}."
            )
        if pixels.dtype != np.uint8:
            pixels = np.clip(np.nan_to_num(pixels.astype(np.float32)), 0.0, 1.0)
        self._write(_summaries().image(tag, pixels, dataformats="HWC"), step)

    def text(self, tag: str, text: str, step: int) -> None:
        """Writes a text, which TensorBoard shows as Markdown. The tag in the file is `<tag>/text_summary`."""
        self._write(_summaries().text(tag, text), step)

    def event(self, event: Any, step: int) -> None:
        """Writes an event of TensorBoard's own protocol, for its plugins: a graph, hyperparameters, data of curves.

        Args:
            event: a `tensorboardX.proto.event_pb2.Event`. This method sets its step and wall time.
            step: the global step.
        """
        event.step, event.wall_time = int(step), time.time()
        with self._lock:
            self.encode()
            self._append(event)

    def resume(self, step: int) -> None:
        """Marks that a run continues from `step`. Readers drop the points of later steps in the directory."""
        with self._lock:
            self.encode()
            self._resume_step = step

    def flush(self) -> None:
        """Passes all points so far to the operating system, so that readers see them."""
        with self._lock:
            self.encode()
            if self._file is not None and self._dirty:
                self._file.flush()
                self._dirty = False
                self._note()

    def close(self) -> None:
        """Closes the file. A later point opens a new one."""
        with self._lock:
            self.flush()
            if self._file is not None:
                self._file.close()
            self._file = self._existed = None

    def take_written(self) -> list[Written]:
        """Flushes the files, and returns those that were written since the last call."""
        with self._lock:
            self.flush()
            written, self._written = self._written, {}
            return [Written(path=path, size=size) for path, size in written.items()]

    def _note(self) -> None:
        try:
            stat = self._path.stat()
            removed = stat.st_ino != self._inode
        except OSError:
            stat, removed = None, True
        if stat is None or removed:
            _log.error(
                "The event file %s was removed or replaced while the run wrote it: its contents are lost for "
                "TensorBoard. The run continues with a new file; leave model_dir alone while a run writes to it.",
                self._path,
            )
            self._file.close()
            self._file = None
            self._written.pop(self._path, None)
        else:
            self._written[self._path] = stat.st_size

    def _write(self, summary: object, step: int) -> None:
        self.event(_events().Event(summary=summary), step)

    def _append(self, event: object) -> None:
        events, file = _events(), self._opened()
        if self._resume_step is not None:
            start = events.SessionLog(status=events.SessionLog.START)
            # TensorBoard's web server treats the first START as the beginning of the run, so two are written.
            for _ in range(2):
                self._record(file, events.Event(wall_time=time.time(), step=self._resume_step + 1, session_log=start))
            self._resume_step = None
        self._record(file, event)

    def _record(self, file: Any, event: Any) -> None:
        data: bytes = event.SerializeToString()
        length = struct.pack("<Q", len(data))
        file.write(b"".join((length, _checksum(length), data, _checksum(data))))
        self._dirty = file is self._file

    def _opened(self) -> Any:
        if self._file is None:
            if self._existed and not self.directory.is_dir():
                return _NOWHERE  # removed while the run used it, so it is not created again
            self.directory.mkdir(parents=True, exist_ok=True)
            self._existed = True
            self._path, self._file = _new_file(self.directory, self.epoch(), held=self.held)
            self._inode = os.fstat(self._file.fileno()).st_ino
            self._record(self._file, _events().Event(wall_time=time.time(), file_version="brain.Event:2"))
        return self._file


class _Nowhere:
    def write(self, data: bytes) -> None:
        """Discards the data."""


_NOWHERE: Final = _Nowhere()


def _new_file(directory: Path, epoch: int, *, held: bool) -> tuple[Path, Any]:
    """Creates and opens the file that readers read last."""
    found = (_NUMBERED.match(name) for name in os.listdir(directory))
    number = max((int(match[1]) for match in found if match), default=0)
    while True:
        number += 1
        path = directory / f"events.out.tfevents.{number:010d}.e{epoch:06d}"
        with suppress(FileExistsError):  # another process was faster
            file = open(path, "xb")  # noqa: SIM115 - the writer closes it
            if not held or try_lock(file) is not False:
                return path, file
            file.close()  # another process treated it as abandoned before it was locked


def try_lock(file: BinaryIO) -> bool | None:
    """Locks an open file until it is closed. A kill also closes it.

    Returns:
        Whether no other process had locked it. None if this file system or machine has no such locks.
    """
    try:
        _lock(file)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return os.fstat(file.fileno()).st_nlink > 0


def _lock(file: BinaryIO) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _checksum(data: bytes) -> bytes:
    return struct.pack("<I", _records().masked_crc32c(data))


@cache
def _records() -> Any:
    return import_module("tensorboardX.record_writer")


def _summaries() -> Any:
    return import_module("tensorboardX.summary")


@cache
def _events() -> Any:
    return import_module("tensorboardX.proto.event_pb2")


@cache
def _protocol() -> Any:
    return import_module("tensorboardX.proto.summary_pb2")


@lru_cache(maxsize=4096)
def _clean_tag(tag: str) -> str:
    """Returns the tag as tensorboardX writes it. It is cached, because the same few tags occur thousands of times."""
    return _summaries().scalar(tag, 0.0).value[0].tag


@cache
def _histogram_bins() -> tuple[float, ...]:
    """Returns the bin limits of TensorFlow: powers of 1.1 on both sides of zero, so that steps can be compared."""
    positive = [1e-12]
    while positive[-1] < 1e20:
        positive.append(positive[-1] * 1.1)
    return (*(-limit for limit in reversed(positive)), 0.0, *positive)


@final
class NoSummaries:
    """Accepts every call of a `SummaryWriter` and does nothing.

    Example:
        >>> NO_SUMMARIES.scalar("loss", 0.5, 10)
    """

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Does nothing."""

    def histogram(self, tag: str, values: ArrayLike, step: int) -> None:
        """Does nothing."""

    def image(self, tag: str, image: ArrayLike, step: int) -> None:
        """Does nothing."""

    def text(self, tag: str, text: str, step: int) -> None:
        """Does nothing."""

    def event(self, event: object, step: int) -> None:
        """Does nothing."""

    def collecting(self) -> AbstractContextManager[None]:
        """Does nothing."""
        return nullcontext()

    def encode_if_due(self) -> bool:
        """Returns True, because no numbers wait."""
        return True

    def flush(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


NO_SUMMARIES: Final = NoSummaries()
