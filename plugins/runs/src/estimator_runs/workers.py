"""Processes that work on one directory: each part of the work belongs to one of them at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def owned(folder: Path) -> Generator[bool]:
    """Whether this process may work in a directory; no other process may do so within the block. The operating system
    releases the lock when a process dies.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "owner.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def run_workers(module: str, said: Mapping[str, Any], count: int) -> list[int]:
    """Runs processes that end with this one: each reads a pipe that closes with it.

    Args:
        module: run with `python -m`.
        said: its argument, as JSON.
        count: how many.

    Returns:
        Their exit codes.
    """
    command = [sys.executable, "-m", module, json.dumps(said)]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(count)]
    try:
        return [worker.wait() for worker in workers]
    finally:
        for worker in workers:
            if worker.stdin is not None:
                worker.stdin.close()
            worker.wait()


def end_with_parent() -> None:
    """Ends this process, as by SIGTERM, when the one that started it has ended."""

    def wait() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
