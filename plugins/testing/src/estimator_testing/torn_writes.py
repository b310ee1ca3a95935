"""Simulates a process that is killed in the middle of a write to a file."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any
from unittest import mock

_REAL_OPEN = io.open


class Killed(BaseException):
    """The simulated kill. Handlers of errors do not see it."""


class TornWrites:
    """Tears one write to a file that `open` opened: half of it reaches the file, then the process is killed.

    Args:
        folder: the folder of the files that count.
        at: the number of writes that succeed before.
        fault: the error that the write raises. None: the process is killed.

    Attributes:
        torn: whether the torn write has been made.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> try:
        ...     with TornWrites(folder, at=0).until_torn():
        ...         _ = (folder / "file").write_text("abcd")
        ... except Killed:
        ...     print((folder / "file").read_text())
        ab
    """

    def __init__(self, folder: Path, *, at: int, fault: OSError | None = None) -> None:
        self._folder, self._left, self._fault = folder, at, fault
        self._paused = False
        self.torn = False

    @contextlib.contextmanager
    def until_torn(self) -> Generator[None]:
        """Counts the writes in the block, until one has been torn."""
        if self.torn:
            yield
            return
        with mock.patch.object(io, "open", self._open), mock.patch.object(builtins, "open", self._open):
            yield

    def leaving_alone(self, estimator: Any) -> Any:
        """Returns the estimator, with writes that are not torn."""
        return _Paused(estimator, self)

    @contextlib.contextmanager
    def paused(self) -> Generator[None]:
        """Suspends the count of writes in the block."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def _open(self, file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        opened = _REAL_OPEN(file, mode, *arguments, **named)
        if self._paused or not set(mode) & set("wax+") or not self._is_below(file):
            return opened
        return _Torn(opened, self)

    def _is_below(self, file: Any) -> bool:
        return not isinstance(file, int) and Path(os.fsdecode(file)).absolute().is_relative_to(self._folder)

    def cut(self, opened: Any, data: Any) -> Any:
        """Writes the data, or writes half of it and kills."""
        self._left -= 1
        if self._left >= 0 or self.torn:
            return opened.write(data)
        self.torn = True
        opened.write(data[: len(data) // 2])
        opened.close()
        raise self._fault or Killed("in the middle of a write")


class _Torn:
    """An open file whose writes are counted."""

    def __init__(self, opened: Any, writes: TornWrites) -> None:
        self._opened, self._writes = opened, writes

    def write(self, data: Any) -> Any:
        """Writes the data, unless the write is torn."""
        return self._writes.cut(self._opened, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)

    def __enter__(self) -> _Torn:
        return self

    def __exit__(self, *raised: object) -> None:
        self._opened.close()


class _Paused:
    """An estimator that exports without a torn write."""

    def __init__(self, estimator: Any, writes: TornWrites) -> None:
        self._estimator, self._writes = estimator, writes

    def export_saved_model(self, *arguments: Any, **named: Any) -> Any:
        """Exports without a torn write."""
        with self._writes.paused():
            return self._estimator.export_saved_model(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._estimator, name)
