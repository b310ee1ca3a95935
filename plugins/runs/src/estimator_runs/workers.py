"""Processes that work on one directory. Each part of the work belongs to one of them at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, TextIO

from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError, EstimatorError, PreemptedError
from estimator_runs.gpu_assignment import cards_of_process, cards_of_worker

_CAN_BE_RESUMED = 75
_LOOK_SECS = 0.05
_SAME_SIGNAL_SECS = 0.25  # terminals and launchers both pass a signal on


@contextlib.contextmanager
def owned(folder: Path) -> Generator[bool]:
    """Yields whether this process may work in a directory. No other process may do so within the block.

    The operating system releases the lock when a process dies.

    Raises:
        ArgumentError: the directory cannot be written.
    """
    with opened_lock(folder / "owner.lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def opened_lock(path: Path) -> TextIO:
    """Opens the file of a lock, in a directory that is created if it is missing.

    Raises:
        ArgumentError: the directory cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}. Give another directory (--dir).") from error


class Interruption:
    """Records SIGTERM and SIGINT in the main thread. A second signal has the effect that it has without this object.

    A training within the block handles signals itself, and passes on a signal that comes too late for it.

    Attributes:
        reason: the name of the signal; None: there was no signal.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._time = 0.0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def check(self) -> None:
        """Raises between two of the trainings and evaluations of a longer work if there was a signal.

        Raises:
            PreemptedError: there was a signal.
        """
        if self.reason is not None:
            raise PreemptedError(f"The command was interrupted ({self.reason}). Start again to continue.")

    def _handle(self, number: int, frame: object) -> None:
        if self.reason is None:
            self.reason, self._time = signal.Signals(number).name, time.monotonic()
        elif time.monotonic() - self._time > _SAME_SIGNAL_SECS:
            self._restore()
            signal.raise_signal(number)

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous = {}


def run_workers(module: str, said: Mapping[str, Any], count: int) -> list[int]:
    """Runs processes that end with this one. Each reads a pipe that closes when this process ends.

    Args:
        module: the module, which is run with `python -m`.
        said: the argument, which is passed as JSON.
        count: the number of processes.

    Returns:
        The exit codes.

    Raises:
        PreemptedError: the processes were interrupted, or this process was interrupted and has waited for them.
    """
    command = [sys.executable, "-m", module, json.dumps(said)]
    environs = [{**os.environ, **cards_of_worker(place, count, os.environ)} for place in range(count)]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, env=environ) for environ in environs]
    with Interruption() as interruption:
        try:
            while interruption.reason is None and any(worker.poll() is None for worker in workers):
                time.sleep(_LOOK_SECS)
        finally:
            for worker in workers:
                if worker.stdin is not None:
                    worker.stdin.close()
                worker.wait()
    codes = [worker.wait() for worker in workers]
    failed = [code for code in codes if code]
    if failed and (interruption.reason is not None or set(failed) == {_CAN_BE_RESUMED}):
        raise PreemptedError(f"The workers were interrupted (exit codes {codes}). Start again to continue.")
    return codes


def worked(work: Callable[[], None]) -> int:
    """Returns the exit code of a worker: 0 if its work is done, 75 if it can be resumed, 1 after an error of one line.

    Args:
        work: the work.
    """
    try:
        work()
    except PreemptedError:
        return _CAN_BE_RESUMED
    except EstimatorError as error:
        sys.stderr.write(f"worker: error: {error}\n")
        return 1
    return 0


def train_alone() -> None:
    """Makes this process train alone, even if a launcher or a scheduler has started others of its job.

    It restricts itself to its own cards. Call it before jax searches for devices.
    """
    with contextlib.suppress(ArgumentError):  # contradictory variables have no effect here
        if (group := RunConfig().process_group) is not None:
            os.environ.update(cards_of_process(group.local_device_ids, os.environ))
    for name in ("JAX_COORDINATOR_ADDRESS", "JAX_PROCESS_ID", "TF_CONFIG"):
        os.environ.pop(name, None)
    os.environ["JAX_NUM_PROCESSES"] = "1"


def end_with_parent() -> None:
    """Ends this process as SIGTERM does, when the process that started it has ended."""

    def wait() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
