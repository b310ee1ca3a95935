"""Processes that write to a storage, for `StorageSuite`: run this module by `python -m` with OPENS, URL and WHAT."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

from estimator_core.storage import ObjectExistsError, OutcomeUnknownError, Storage

#: The number of objects that processes race to create, and the size in bytes of the objects of `streams`.
RACES, STREAMED = 20, 3_000_000


def opened(opens: str, location: str) -> Storage:
    """Returns the storage at a location.

    Args:
        opens: the `module:name` of the function that opens it.
        location: the path or URL.
    """
    module, _, name = opens.partition(":")
    return getattr(importlib.import_module(module), name)(location)


def start(opens: str, location: str, what: str) -> subprocess.Popen[str]:
    """Starts a process that prints `ready`, and begins its work when it reads a line."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", __name__, opens, location, what]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)


def content(number: int) -> bytes:
    """Returns the content that `singles` writes."""
    return b"%09d" % number * 20_000


def streamed(number: int) -> Iterator[bytes]:
    """Yields the content that `streams` writes, in chunks."""
    for _ in range(STREAMED // 10_000):
        yield b"%010d" % number * 1_000


def races(storage: Storage) -> None:
    """Tries to create each of a few objects, and prints which ones it created."""
    for number in range(RACES):
        with contextlib.suppress(ObjectExistsError, OutcomeUnknownError):
            storage.put_new(f"races/{number}", b"%d" % os.getpid())
            print(number, flush=True)  # noqa: T201 - read by the suite


def singles(storage: Storage) -> None:
    """Creates objects until it is killed."""
    for number in itertools.count():
        storage.put_new(f"singles/{number}", content(number))
        print(number, flush=True)  # noqa: T201 - read by the suite


def streams(storage: Storage) -> None:
    """Writes and replaces large objects until it is killed."""
    for number in itertools.count():
        storage.put_stream(f"streams/{number % 3}", streamed(number), size=STREAMED)
        print(number, flush=True)  # noqa: T201 - read by the suite


_WORK: dict[str, Callable[[Storage], None]] = {"races": races, "singles": singles, "streams": streams}

if __name__ == "__main__":
    _storage = opened(*sys.argv[1:3])
    print("ready", flush=True)  # noqa: T201 - read by the suite
    sys.stdin.readline()
    _WORK[sys.argv[3]](_storage)
