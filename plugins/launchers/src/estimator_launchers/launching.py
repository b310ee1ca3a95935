"""Runs a job from its plan to its end: `estimator launch` for programs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_launchers.contract import JobSpec, JobStatus, Launcher, Plan
from estimator_launchers.errors import LaunchError

if TYPE_CHECKING:
    from types import FrameType

_POLL_SECS = 0.2
_STOP_AGAIN_SECS = 5.0
_SAME_SIGNAL_SECS = 0.25  # terminals and parent processes may both pass the same signal on


def find_launcher(name: str) -> Launcher:
    """Returns the launcher of an installed package.

    Raises:
        PluginLookupError: no launcher has this name; the message lists the installed ones.

    Example:
        >>> find_launcher("local").name
        'local'
    """
    from estimator_core.plugins import default_plugins

    launcher = default_plugins().get("launcher", name)()
    if not isinstance(launcher, Launcher):
        raise ArgumentTypeError(f"The launcher {name!r} returns {launcher!r}, which lacks methods of Launcher.")
    return launcher


def launch(job: JobSpec, on: str = "local", *, write: Callable[[str], Any] | None = None) -> JobStatus:
    """Submits a job, shows what its processes write, and returns how it ended.

    SIGTERM and SIGINT ask the processes to save and end; the job can then be resumed.

    Args:
        job: the job to run.
        on: the name of the launcher.
        write: the function that receives each line. None: standard output.

    Raises:
        ArgumentError, LaunchError: the job cannot be started.

    Example:
        >>> import sys
        >>> launch(JobSpec(command=(sys.executable, "-c", "print('hello')"), processes=2)).phase  # doctest: +SKIP
        [0] hello
        [1] hello
        'succeeded'
    """
    launcher = find_launcher(on)
    return submit_and_follow(launcher, launcher.plan(job), write=write)


def submit_and_follow(
    launcher: Launcher,
    plan: Plan,
    *,
    write: Callable[[str], Any] | None = None,
    submitted: Callable[[str], Any] = lambda _: None,
) -> JobStatus:
    """Submits a plan, shows what its processes write until they end, and returns how the job ended.

    SIGTERM and SIGINT are handled from before the submission. Whenever they arrive, the processes are asked to end. A
    second signal during the submission ends this process. A second one later kills the processes, if the launcher has a
    method `kill(job_id)`.

    Args:
        launcher: the launcher of the plan.
        plan: the plan to submit.
        write: the function that receives each line. None: standard output.
        submitted: the function that receives the id of the job.

    Raises:
        LaunchError: the job cannot be started.
    """
    with _Signals(_waits(launcher, plan.job)) as signals:
        job_id = launcher.submit(plan)
        signals.submitted = True
        submitted(job_id)
        return _follow(launcher, job_id, plan.job, signals.asked, _Show(write or _to_stdout), signals.again)


def follow(launcher: Launcher, job_id: str, job: JobSpec, *, write: Callable[[str], Any] | None = None) -> JobStatus:
    """Shows what the processes of a submitted job write until it ends. Returns how it ended."""
    with _Signals(_waits(launcher, job)) as signals:
        signals.submitted = True
        return _follow(launcher, job_id, job, signals.asked, _Show(write or _to_stdout), signals.again)


def _waits(launcher: Launcher, job: JobSpec) -> str:
    """Returns the message for the first signal."""
    waits = f"the processes save and stop; this command waits up to {job.grace_secs:g} s for them"
    return f"{waits}. A second signal kills them at once" if hasattr(launcher, "kill") else waits


def _follow(
    launcher: Launcher,
    job_id: str,
    job: JobSpec,
    asked: threading.Event,
    show: _Show,
    again: threading.Event | None = None,
) -> JobStatus:
    width = len(str(job.processes - 1))
    readers = [
        threading.Thread(target=show.all, args=(f"[{process:>{width}}] ", launcher, job_id, process), daemon=True)
        for process in range(job.processes + job.evaluator)
    ]
    events = getattr(launcher, "events", None)
    if events is not None:
        readers.append(threading.Thread(target=show.events, args=(events, job_id), daemon=True))
    for reader in readers:
        reader.start()
    status = launcher.status(job_id)
    stopper: threading.Thread | None = None
    while not status.ended:
        if again is not None and again.is_set():
            again.clear()
            getattr(launcher, "kill", lambda _: None)(job_id)
        if asked.is_set() and stopper is None:
            stopper = threading.Thread(target=_stop, args=(launcher, job_id, job.grace_secs), daemon=True)
            stopper.start()
        time.sleep(_POLL_SECS)
        status = launcher.status(job_id)
    for reader in readers:
        reader.join()
    return status


def _stop(launcher: Launcher, job_id: str, grace_secs: float) -> None:
    """Requests the stop until the engine accepts it."""
    while True:
        try:
            launcher.stop(job_id, grace_secs)
        except LaunchError as error:
            sys.stderr.write(f"estimator launch: the job could not be asked to end yet: {error}\n")
            time.sleep(_STOP_AGAIN_SECS)
        else:
            return


class _Signals:
    """Sets an event at the first SIGTERM or SIGINT, and another event at a later one.

    Outside of the main thread it does not handle signals.

    Args:
        said: the message for the first signal.
    """

    def __init__(self, said: str) -> None:
        self.asked, self.again = threading.Event(), threading.Event()
        self._said, self._time = said, 0.0
        self._previous: dict[int, Any] = {}
        self.submitted = False

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self.asked.is_set():
            self._time = time.monotonic()
            self.asked.set()
            said = self._said if self.submitted else "the job is submitted first, and then asked to end"
            with suppress(OSError):
                os.write(2, f"estimator launch: {signal.Signals(number).name}: {said}.\n".encode())
        elif self.submitted:
            if time.monotonic() - self._time > _SAME_SIGNAL_SECS:
                self.again.set()
        else:  # the engine does not answer
            os.write(2, b"estimator launch: the submission is given up; the engine may have taken the job.\n")
            self.__exit__()
            signal.raise_signal(number)


class _Show:
    """Writes the lines of several threads, without mixing them."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self._write, self._lock = write, threading.Lock()

    def all(self, prefix: str, launcher: Launcher, job_id: str, process: int) -> None:
        with suppress(LaunchError):  # the query for the state of the job reports the error
            for line in launcher.logs(job_id, process):
                with self._lock:
                    self._write(prefix + line)

    def events(self, events: Callable[[str], Any], job_id: str) -> None:
        with suppress(LaunchError):
            for line in events(job_id):
                sys.stderr.write(line + "\n")
                sys.stderr.flush()


def _to_stdout(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def parse_pairs(texts: list[str], what: str) -> dict[str, str]:
    """Returns the mapping of `NAME=VALUE` arguments.

    Raises:
        ArgumentError: an argument has no name or no `=`.

    Example:
        >>> parse_pairs(["partition=gpu"], "--option")
        {'partition': 'gpu'}
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ArgumentError(f"{what} {text!r}: write {what} NAME=VALUE.")
        pairs[name] = value
    return pairs
