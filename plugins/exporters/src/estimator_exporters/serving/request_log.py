"""Writes a sample of request rows to files that `estimator inputs validate` compares with the training data.

Only rows that match the inputs of a model are recorded. A thread writes them. If it cannot keep up, rows are dropped
and do not wait.
"""

from __future__ import annotations

import io
import json
import logging
import os
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from estimator_core.export import Feature
from estimator_exporters.bundle.object_arrays import decoded

Arrays = Mapping[str, np.ndarray]
Record = Callable[[Arrays], None]
Recorder = Callable[[str, Mapping[str, Feature]], Record]
_WAITING = 256  # pieces of requests that wait for the writer
_LAST = 5.0  # seconds for writing them at the end
_log = logging.getLogger("estimator_exporters")


def unrecorded(model: str, inputs: Mapping[str, Feature]) -> Record:
    """Records nothing."""
    return lambda arrays: None


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The settings of the request log.

    Attributes:
        directory: the directory with one file `NAME.jsonl` per model, one row per line. Only the owner may read the
            files.
        rate: the share of rows that are recorded, above 0 and up to 1.
        masked: the columns whose values are never written. Their value in a row is null.
        file_bytes: the size at which a file is renamed to `NAME.jsonl.1`. It replaces the previous file of that name.
        seed: the seed for the choice of rows. None: a random seed.
    """

    directory: Path
    rate: float = 0.01
    masked: frozenset[str] = frozenset()
    file_bytes: int = 100 * 2**20
    seed: int | None = None


class RequestLog:
    """Writes a sample of the rows of all models. Calling it returns the recorder of one model.

    Args:
        sampling: the settings of the log.

    Raises:
        OSError: the directory cannot be created.
    """

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed)
        self._waiting: queue.Queue[tuple[Path, Arrays] | None] = queue.Queue(_WAITING)
        sampling.directory.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._write_all, name="request-log", daemon=True)
        self._thread.start()
        self.left_out = 0
        self._told: set[str] = set()

    def __call__(self, model: str, inputs: Mapping[str, Feature]) -> Record:
        """Returns the function to call with the arrays of each request of a model."""
        path = self._sampling.directory / f"{_file_name(model)}.jsonl"
        self._tell_of_unmasked(model, inputs)
        rowwise = bool(inputs) and all(feature.shape[:1] == (None,) for feature in inputs.values())

        def record(arrays: Arrays) -> None:
            rows = len(next(iter(arrays.values()))) if rowwise else 1
            chosen = np.flatnonzero(self._random.random(rows) < self._sampling.rate)
            if not len(chosen):
                return
            kept = {
                name: np.take(array, chosen, axis=0) if rowwise else np.asarray(array)[None]
                for name, array in arrays.items()
                if name not in self._sampling.masked
            }
            try:
                self._waiting.put_nowait((path, {**kept, **self._masks(arrays, len(chosen))}))
            except queue.Full:
                self.left_out += len(chosen)

        return record

    def _tell_of_unmasked(self, model: str, inputs: Mapping[str, Feature]) -> None:
        """Warns once per model: a misspelled name masks nothing, and neither does a name inside a tf.Example."""
        unknown = sorted(self._sampling.masked - inputs.keys())
        if unknown and model not in self._told:
            self._told.add(model)
            _log.warning(
                "--request-mask: model %s has no input %s. The values of its other inputs are written: %s",
                model,
                ", ".join(unknown),
                ", ".join(sorted(inputs.keys() - self._sampling.masked)),
            )

    def _masks(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        return {name: np.full(rows, None, object) for name in arrays if name in self._sampling.masked}

    def close(self) -> None:
        """Writes the waiting rows. A disk that does not respond cannot block the end of the process."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=_LAST)
            self._thread.join(_LAST)
        if self.left_out:
            _log.warning("The request log left out %d rows that could not be written in time", self.left_out)

    def _write_all(self) -> None:
        fails = False
        while (piece := self._waiting.get()) is not None:
            try:
                self._write(*piece)
            except Exception as error:  # the thread continues with the next rows after any error
                self.left_out += len(next(iter(piece[1].values())))
                if not fails:
                    _log.error("The request log cannot be written: %s. Rows are left out until it can", error)
                fails = True
            else:
                if fails:
                    _log.info("The request log is written again; %d rows were left out", self.left_out)
                fails = False

    def _write(self, path: Path, arrays: Arrays) -> None:
        columns = [_plain(array) for array in arrays.values()]
        lines = [json.dumps(dict(zip(arrays, row, strict=True))) + "\n" for row in zip(*columns, strict=True)]
        # The file is unbuffered. With a buffer, rows that did not fit on the disk would be written again at the end.
        with _locked(path, self._sampling.file_bytes) as file:
            whole = file.seek(0, os.SEEK_END)
            try:
                _write_whole(file, "".join(lines).encode())
            except OSError:
                with suppress(OSError):
                    file.truncate(whole)  # half a line would damage the next one
                raise


def _locked(path: Path, most: int) -> io.FileIO:
    """Opens the file and locks it for this server. A full file becomes `NAME.1` and replaces the previous one."""
    while True:
        file = io.FileIO(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")
        try:
            _lock(file)
            here = os.fstat(file.fileno())
            with suppress(FileNotFoundError):
                if os.path.samestat(here, path.stat()):  # otherwise another server has moved it
                    if here.st_size < most:
                        return file
                    path.replace(path.with_name(f"{path.name}.1"))
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: io.FileIO) -> None:
    """Waits for other servers that write the file, so that no row is cut. Returns at once on systems without locks."""
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _write_whole(file: io.FileIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _file_name(model: str) -> str:
    """Returns a name without path separators, also for signatures. It is different for each model.

    Example:
        >>> _file_name("spam:a/b")
        'spam%3Aa%2Fb'
    """
    return quote(model, safe="")


def _plain(array: np.ndarray) -> list[Any]:
    """Returns values that JSON can represent: text for bytes, and null for non-finite numbers."""
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        plain = array.astype(object)
        plain[~np.isfinite(array)] = None
        array = plain
    return decoded(array.tolist()) if array.dtype == object else array.tolist()
