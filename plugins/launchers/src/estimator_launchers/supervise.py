"""Processes of this machine that train together, watched and started again: `python -m estimator_launchers.supervise`.

The folder of the job holds `job.json`, `state.json` and a log for each process. The secret of the run arrives in the
environment, and is passed on in it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from estimator_launchers.contract import JobSpec, JobStatus
from estimator_launchers.environment import cards_here, evaluator_environment, trainer_environment
from estimator_launchers.outcome import RESUMABLE, can_go_on, outcome, signal_of

_POLL_SECS = 0.05
_Child = subprocess.Popen[bytes]


class Group:
    """The children of one attempt, in the order in which they end."""

    def __init__(self, children: Mapping[int, _Child], grace_secs: float, say: Callable[[str], None]) -> None:
        self._children, self._grace_secs, self._say = dict(children), grace_secs, say
        self.ended: list[tuple[int, int]] = []
        self._kill_at: float | None = None

    @property
    def running(self) -> bool:
        """Whether any child runs."""
        return len(self.ended) < len(self._children)

    def poll(self, now: float) -> None:
        """Notes the children that ended. Ends the others by force when the grace after a failure is over."""
        seen = {index for index, _ in self.ended}
        for index, child in self._children.items():
            if index not in seen and child.poll() is not None:
                self.ended.append((index, child.returncode))
                if child.returncode and self.running and self._kill_at is None:
                    self._say(f"process {index} has ended: {in_words(child.returncode)}")
                    self._kill_at = now + self._grace_secs
        if self._kill_at is not None and now > self._kill_at:
            self._kill_at = None
            for index, child in self._alive():
                self._say(f"process {index} did not end; it is killed.")
                child.kill()

    def ask_to_end(self, now: float) -> None:
        """Sends SIGTERM to all. A frozen child is ended by force after the grace."""
        for _, child in self._alive():
            child.terminate()
        self._kill_at = now + self._grace_secs

    def _alive(self) -> list[tuple[int, _Child]]:
        return [(index, child) for index, child in self._children.items() if child.poll() is None]


class Supervisor:
    """Runs a job to its end.

    Args:
        folder: the folder of the job.
        parent: the process with which the job ends; 0: none.
    """

    def __init__(self, folder: Path, parent: int = 0) -> None:
        self._folder, self._parent = folder, parent
        self._job = JobSpec.from_json((folder / "job.json").read_text())
        self._cards = cards_here()
        self._stopping = self._asked = False
        self._restarts = 0

    def run(self) -> JobStatus:
        """Starts the processes, restarts them if that continues the run, and returns the final status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop())
        evaluator = self._evaluator() if self._job.evaluator else None
        while True:
            self._write(JobStatus(phase="running", restarts=self._restarts))
            trainers = self._trainers()
            self._watch(trainers, evaluator)
            status = outcome([status for _, status in trainers.ended])
            if status != RESUMABLE or self._stopping or self._restarts >= self._job.max_restarts:
                break
            self._restarts += 1
            self._say(f"starting all processes again ({self._restarts} of {self._job.max_restarts})")
        if evaluator is not None:
            status = self._end_of(evaluator, status)
        phase = "succeeded" if status == 0 else "resumable" if status == RESUMABLE else "failed"
        why = "; ".join(f"process {index}: {in_words(code)}" for index, code in trainers.ended if code)
        if evaluator is not None and not why:
            why = "; ".join(f"the evaluator: {in_words(code)}" for _, code in evaluator.ended if code)
        return self._write(JobStatus(phase=phase, restarts=self._restarts, why=why))

    def _watch(self, trainers: Group, evaluator: Group | None) -> None:
        while trainers.running:
            now = time.monotonic()
            if self._parent and os.getppid() != self._parent:
                self._stop()
            if self._stopping and not self._asked:
                self._asked = True
                for group in filter(None, (trainers, evaluator)):
                    group.ask_to_end(now)
            trainers.poll(now)
            if evaluator is not None:
                evaluator.poll(now)
            time.sleep(_POLL_SECS)

    def _end_of(self, evaluator: Group, status: int) -> int:
        """The final status. The evaluator ends by itself after training; after a failure it is asked to end."""
        if status != 0 and not self._asked:
            evaluator.ask_to_end(time.monotonic())
        while evaluator.running:
            if self._stopping and not self._asked:
                self._asked = True
                evaluator.ask_to_end(time.monotonic())
            evaluator.poll(time.monotonic())
            time.sleep(_POLL_SECS)
        return status or outcome([code for _, code in evaluator.ended])

    def _trainers(self) -> Group:
        address = f"127.0.0.1:{free_port()}"
        children = {
            index: self._start(index, trainer_environment(self._job, index, address, cards=self._cards))
            for index in range(self._job.processes)
        }
        return Group(children, self._job.grace_secs, self._say)

    def _evaluator(self) -> Group:
        place = self._job.processes
        child = self._start(place, evaluator_environment(self._job, cards=self._cards))
        return Group({place: child}, self._job.grace_secs, self._say)

    def _start(self, index: int, told: Mapping[str, str]) -> _Child:
        run = {"ESTIMATOR_RUN_ID": self._folder.name, "ESTIMATOR_ATTEMPT": str(self._restarts)}
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **self._job.env, **run, **told}
        with (self._folder / f"{index}.log").open("ab") as log:
            try:
                return subprocess.Popen(self._job.command, env=environment, stdout=log, stderr=subprocess.STDOUT)
            except OSError as error:
                self._write(JobStatus(phase="failed", why=f"{self._job.command[0]}: {error.strerror}"))
                raise SystemExit(1) from error

    def _stop(self) -> None:
        self._stopping = True

    def _say(self, text: str) -> None:
        with (self._folder / "launcher.log").open("a") as log:
            log.write(f"estimator launch: {text}\n")

    def _write(self, status: JobStatus) -> JobStatus:
        draft = self._folder / "state.json.new"
        draft.write_text(json.dumps({**asdict(status), "pid": os.getpid()}))
        draft.replace(self._folder / "state.json")
        return status


def in_words(status: int) -> str:
    """An exit status in words.

    Example:
        >>> in_words(-9), in_words(75), in_words(1)
        ('ended by SIGKILL', 'stopped early, can go on', 'failed with status 1')
    """
    number = signal_of(status)
    if number is not None:
        return f"ended by {signal.Signals(number).name}"
    return "stopped early, can go on" if can_go_on(status) else f"failed with status {status}"


def free_port() -> int:
    """A free port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


if __name__ == "__main__":
    Supervisor(Path(sys.argv[1]), int(sys.argv[2])).run()
