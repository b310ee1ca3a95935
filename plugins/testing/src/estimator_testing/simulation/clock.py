"""Time and randomness of simulated processes: the real functions return virtual values in their threads."""

from __future__ import annotations

import contextlib
import random
import threading
import time
import uuid
from collections.abc import Generator
from typing import Protocol
from unittest import mock

_REAL_TIME, _REAL_MONOTONIC, _REAL_SLEEP, _REAL_UUID4 = time.time, time.monotonic, time.sleep, uuid.uuid4


class Timed(Protocol):
    """A process as its clock sees it."""

    chance: random.Random

    def time(self) -> float:
        """Returns the time of its machine."""
        ...

    def monotonic(self) -> float:
        """Returns a time that is never set back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Lets other processes run for this time."""
        ...


class _Here(threading.local):
    process: Timed | None = None


_here = _Here()


@contextlib.contextmanager
def acting_as(process: Timed) -> Generator[None]:
    """Makes this thread a simulated process within the block."""
    before, _here.process = _here.process, process
    try:
        yield
    finally:
        _here.process = before


@contextlib.contextmanager
def virtual_time() -> Generator[None]:
    """Makes `time.time`, `monotonic`, `sleep` and `uuid.uuid4` virtual in the block, in threads of processes."""
    with (
        mock.patch.object(time, "time", _time),
        mock.patch.object(time, "monotonic", _monotonic),
        mock.patch.object(time, "sleep", _sleep),
        mock.patch.object(uuid, "uuid4", _uuid4),
    ):
        yield


def _time() -> float:
    return _REAL_TIME() if _here.process is None else _here.process.time()


def _monotonic() -> float:
    return _REAL_MONOTONIC() if _here.process is None else _here.process.monotonic()


def _sleep(seconds: float) -> None:
    return _REAL_SLEEP(seconds) if _here.process is None else _here.process.sleep(seconds)


def _uuid4() -> uuid.UUID:
    if _here.process is None:
        return _REAL_UUID4()
    return uuid.UUID(int=_here.process.chance.getrandbits(128), version=4)
