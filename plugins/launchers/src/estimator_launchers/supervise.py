"""Watches and restarts processes of this machine that train together: `python -m estimator_launchers.supervise`.

The folder of the job holds `job.json`, `state.json` and a log for each process. The secret of the run arrives in the
environment, and is passed on in it.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from estimator_launchers.contract import JobSpec, JobStatus
from estimator_launchers.environment import cards_here, evaluator_environment, trainer_environment
from estimator_launchers.family import Family
from estimator_launchers.jobs import KILL_SIGNAL, JobFolder
from estimator_launchers.outcome import RESUMABLE, can_go_on, in_words, outcome

_POLL_SECS = 0.05


class Group:
    """The children of one attempt, in the order in which they end.

    Args:
        children: the processes by number.
        grace_secs: the seconds between the first failure, or the request to end, and the forced end.
        say: the function that receives a message for the user.
        evaluator: the number of the evaluator, if it is the child.
    """

    def __init__(
        self,
        children: Mapping[int, Family],
        grace_secs: float,
        say: Callable[[str], None],
        evaluator: int | None = None,
    ) -> None:
        self._children, self._grace_secs, self._say, self._evaluator = dict(children), grace_secs, say, evaluator
        self.ended: list[tuple[int, int]] = []
        self.failed_at: float | None = None
        self._kill_at: float | None = None

    @property
    def running(self) -> bool:
        """Whether any child runs."""
        return len(self.ended) < len(self._children)

    @property
    def lost(self) -> list[int]:
        """The children that a signal ended, such as a kill after the grace.

        Children that jax aborts or that were stopped do not count.
        """
        kept = (signal.SIGABRT, signal.SIGTERM, signal.SIGINT)
        return [index for index, code in self.ended if code < 0 and -code not in kept]

    def poll(self, now: float) -> None:
        """Records the children that ended. Kills the others when the grace after a failure is over."""
        seen = {index for index, _ in self.ended}
        for index, child in self._children.items():
            if index not in seen and (status := child.poll()) is not None:
                self.ended.append((index, status))
                if status and self._kill_at is None:
                    self._say(self._end(index, status))
                    self._kill_at = now + self._grace_secs
                if status and self.failed_at is None:
                    self.failed_at = now
        if self._kill_at is not None and now > self._kill_at:
            self._kill_at = math.inf
            for index, child in self._alive():
                who = "the evaluator" if index == self._evaluator else f"process {index}"
                self._say(f"{who} did not end; it is killed.")
                child.kill()

    def ask_to_end(self, now: float) -> None:
        """Sends SIGTERM to all children. A frozen child is killed after the grace."""
        for _, child in self._alive():
            child.terminate()
        self._kill_at = now + self._grace_secs

    def kill(self) -> None:
        """Kills all children at once."""
        for _, child in self._alive():
            child.kill()

    def _end(self, index: int, status: int) -> str:
        if index == self._evaluator:
            return f"the evaluator on {socket.gethostname()} has ended: {in_words(status)}"
        return f"process {index} on {socket.gethostname()} has ended: {in_words(status)}"

    def _alive(self) -> list[tuple[int, Family]]:
        return [(index, child) for index, child in self._children.items() if child.poll() is None]


class Supervisor:
    """Runs a job to its end.

    Args:
        folder: the folder of the job.
        parent: the process with which the job ends. 0: none.
    """

    def __init__(self, folder: Path, parent: int = 0) -> None:
        self._folder, self._parent = JobFolder(folder), parent
        self._job = JobSpec.from_json((folder / "job.json").read_text())
        self._cards = cards_here()
        self._stopping = self._asked = self._killing = False
        self._restarts, self._count = 0, self._job.processes
        self._evaluator: Group | None = None
        self._evaluator_failed = 0

    def run(self) -> JobStatus:
        """Starts the processes, restarts them if that continues the run, and returns the final status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop())
        signal.signal(KILL_SIGNAL, lambda *_: self._kill())
        if self._job.evaluator:
            self._evaluator = self._started_evaluator()
        while True:
            self._folder.write(JobStatus(phase="running", restarts=self._restarts))
            trainers = self._trainers()
            self._watch(trainers)
            status = self._evaluator_failed or outcome([status for _, status in trainers.ended])
            if status != RESUMABLE or self._stopping or self._restarts >= self._job.max_restarts:
                break
            self._restarts += 1
            self._folder.say(self._next(trainers))
        status = self._end_of_evaluator(status)
        phase = "succeeded" if status == 0 else "resumable" if status == RESUMABLE else "failed"
        return self._folder.write(JobStatus(phase=phase, restarts=self._restarts, why=self._why(trainers)))

    def _why(self, trainers: Group) -> str:
        """Returns how the processes ended, in words. Includes the evaluator if it failed by itself, or if no other
        process ended badly.
        """
        words = [f"process {index}: {in_words(code)}" for index, code in trainers.ended if code]
        if self._evaluator is not None and (self._evaluator_failed or not words):
            words = [f"the evaluator: {in_words(code)}" for _, code in self._evaluator.ended if code] + words
        return "; ".join(words)

    def _next(self, trainers: Group) -> str:
        """Sets the number of processes of the next attempt, and returns the message about it."""
        before, lost = self._count, sorted(trainers.lost)
        enough = self._job.min_processes is not None and before - len(lost) >= self._job.min_processes
        self._count = before - len(lost) if enough else self._job.processes
        passed = "" if trainers.failed_at is None else f", {time.monotonic() - trainers.failed_at:.1f} s after the loss"
        counted = f"({self._restarts} of {self._job.max_restarts}){passed}"
        if self._count == self._job.processes:
            return f"starting all processes again {counted}"
        without = f" without {', '.join(map(str, lost))}" if lost else ""
        return f"starting again{without}, {self._count} together {counted}"

    def _watch(self, trainers: Group) -> None:
        while trainers.running:
            now = time.monotonic()
            if self._parent and os.getppid() != self._parent:
                self._stop()
            if self._stopping and not self._asked:
                self._asked = True
                for group in filter(None, (trainers, self._evaluator)):
                    group.ask_to_end(now)
            if self._killing:
                for group in filter(None, (trainers, self._evaluator)):
                    group.kill()
            trainers.poll(now)
            if self._evaluator is not None and self._look_at(self._evaluator, now):
                self._asked = True
                trainers.ask_to_end(now)
            time.sleep(_POLL_SECS)

    def _look_at(self, evaluator: Group, now: float) -> bool:
        """Returns whether the evaluator just failed by itself. A lost evaluator restarts, and training continues."""
        if not evaluator.running:
            return False
        evaluator.poll(now)
        if evaluator.running or self._stopping or self._asked:
            return False
        status = evaluator.ended[0][1]
        if status and not can_go_on(status):
            self._evaluator_failed = status
            return True
        if status and self._restarts < self._job.max_restarts:
            self._restarts += 1
            self._folder.write(JobStatus(phase="running", restarts=self._restarts))
            self._folder.say(f"starting the evaluator again ({self._restarts} of {self._job.max_restarts})")
            self._evaluator = self._started_evaluator()
        elif status:
            self._folder.say(
                f"the evaluator does not start again: --max-restarts {self._job.max_restarts} allows no more. The job "
                "returns 75 when training has ended."
            )
        return False

    def _end_of_evaluator(self, status: int) -> int:
        """Returns the final status. The evaluator ends by itself after training, and on request after a failure."""
        if self._evaluator is None:
            return status
        if status != 0 and not self._asked:
            self._asked = True
            self._evaluator.ask_to_end(time.monotonic())
        while self._evaluator.running:
            if self._stopping and not self._asked:
                self._asked = True
                self._evaluator.ask_to_end(time.monotonic())
            if self._killing:
                self._evaluator.kill()
            self._look_at(self._evaluator, time.monotonic())
            time.sleep(_POLL_SECS)
        return status or outcome([code for _, code in self._evaluator.ended])

    def _trainers(self) -> Group:
        address, job = f"127.0.0.1:{free_port()}", self._job.with_processes(self._count)
        children = {
            index: self._start(index, trainer_environment(job, index, address, cards=self._cards))
            for index in range(job.processes)
        }
        return Group(children, self._job.grace_secs, self._folder.say)

    def _started_evaluator(self) -> Group:
        place = self._job.processes
        child = self._start(place, evaluator_environment(self._job, cards=self._cards))
        return Group({place: child}, self._job.grace_secs, self._folder.say, evaluator=place)

    def _start(self, index: int, told: Mapping[str, str]) -> Family:
        run = {"ESTIMATOR_RUN_ID": self._folder.path.name, "ESTIMATOR_ATTEMPT": str(self._restarts)}
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **self._job.env, **run, **told}
        with (self._folder.path / f"{index}.log").open("ab") as log:
            try:
                return Family(self._job.command, grace_secs=self._job.grace_secs, env=environment, output=log)
            except OSError as error:
                self._folder.write(JobStatus(phase="failed", why=f"{self._job.command[0]}: {error.strerror}"))
                raise SystemExit(1) from error

    def _stop(self) -> None:
        self._stopping = True

    def _kill(self) -> None:
        self._stopping = self._killing = True


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a free port of this machine, at the address of a host. "" means all addresses."""
    with socket.create_server((host, 0)) as server:
        return server.getsockname()[1]


if __name__ == "__main__":
    Supervisor(Path(sys.argv[1]), int(sys.argv[2])).run()
