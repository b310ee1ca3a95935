"""The contract of a launcher, which starts and restarts the processes of a run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath
from typing import Any, Literal, Protocol, runtime_checkable

from estimator_core.errors import ArgumentError, check_count

Phase = Literal["pending", "running", "succeeded", "resumable", "failed"]


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """A run of several processes, for any launcher.

    Args:
        command: the command of each process.
        processes: the number of processes that train together.
        name: the name of the job: lower-case letters of ASCII, digits and hyphens.
        hosts: the number of machines. The processes are distributed over them evenly.
        devices: the number of accelerators of each process. None: the processes of a machine share all of them. Without
            accelerators: the number of virtual CPU devices.
        evaluator: whether one further process runs as the evaluator.
        env: further environment variables of each process. Plans show them, so they must not hold secrets.
        image: the container image, if the launcher needs one.
        max_restarts: how often processes are restarted after a failure from which the run can continue: all training
            processes, or only the evaluator.
        min_processes: the smallest number of processes that may continue without the lost ones. None: all are
            restarted.
        grace_secs: the seconds between a stop request, or the failure of another process, and the forced end.
        time_limit_secs: the seconds after which the scheduler ends the job. None: the limit of the scheduler.
        model_dir: the directory of the run, if the launcher needs it, for example for TensorBoard.
        attached: whether the job ends with the process that submits it, if the launcher can ensure that.
        options: options of this launcher only, by name.

    Raises:
        ArgumentError: an invalid value.

    Example:
        >>> JobSpec(command=("python", "train.py"), processes=4, hosts=2).processes_per_host
        2
    """

    command: tuple[str, ...]
    processes: int = 1
    name: str = "train"
    hosts: int = 1
    devices: int | None = None
    evaluator: bool = False
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    image: str = ""
    max_restarts: int = 0
    min_processes: int | None = None
    grace_secs: float = 60.0
    time_limit_secs: float | None = None
    model_dir: str = ""
    attached: bool = False
    options: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if not self.command:
            raise ArgumentError("There is no command to run. Give it after --, for example -- python train.py")
        counts = {"processes": 1, "hosts": 1, "devices": 1, "min_processes": 1, "max_restarts": 0}
        for name, least in counts.items():
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), least=least)
        if self.processes < 1 or self.hosts < 1 or self.processes % self.hosts:
            raise ArgumentError(
                f"{self.processes} processes on {self.hosts} hosts are not possible: there must be at least one of "
                "each, and the same number of processes on each host."
            )
        if self.devices is not None and self.devices < 1:
            raise ArgumentError(f"devices should be at least 1, given: {self.devices}.")
        if self.min_processes is not None and not 1 <= self.min_processes <= self.processes:
            raise ArgumentError(
                f"min_processes should be from 1 to the {self.processes} processes, given: {self.min_processes}."
            )
        if self.max_restarts < 0 or not 0 < self.grace_secs < math.inf:
            raise ArgumentError(
                f"max_restarts must not be negative and grace_secs must be positive, given: {self.max_restarts} and "
                f"{self.grace_secs}."
            )
        if self.time_limit_secs is not None and not 0 < self.time_limit_secs < math.inf:
            raise ArgumentError(f"time_limit_secs must be positive, given: {self.time_limit_secs}.")
        if not re.fullmatch("[a-z0-9][a-z0-9-]*", self.name):
            raise ArgumentError(f"name should have only lower-case letters, digits and hyphens, given: {self.name!r}.")
        for name in self.env:
            if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
                raise ArgumentError(
                    f"The name of a variable in env should have only letters, digits and underscores, and not begin "
                    f"with a digit, given: {name!r}."
                )

    @property
    def processes_per_host(self) -> int:
        """The number of processes on each machine."""
        return self.processes // self.hosts

    def with_processes(self, count: int) -> JobSpec:
        """Returns the same job with another number of processes, for one attempt.

        Example:
            >>> JobSpec(command=("x",), processes=4, hosts=2).with_processes(3).processes
            3
        """
        hosts = self.hosts if count % self.hosts == 0 else 1
        return replace(self, processes=count, hosts=hosts, min_processes=None)

    def to_json(self) -> str:
        """Returns the job as text, for the process that supervises it."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> JobSpec:
        """Reads the text of `to_json`."""
        given: dict[str, Any] = json.loads(text)
        given["command"] = tuple(given["command"])
        return cls(**given)

    def check_whole(self, launcher: str) -> None:
        """Refuses `min_processes`, for a launcher whose engine always restarts the same number of processes.

        Raises:
            ArgumentError: the job sets it.
        """
        if self.min_processes is not None:
            raise ArgumentError(
                f"The launcher {launcher!r} always restarts the same number of processes: leave out --min-processes."
            )

    def check_options(self, launcher: str, known: Mapping[str, str]) -> None:
        """Refuses options that the launcher does not know, and values of several lines.

        Raises:
            ArgumentError: an unknown option, of which the message lists the known ones and their meanings, or a value
                with a line break or another character that cannot be printed.
        """
        unknown = sorted(set(self.options) - set(known))
        if unknown:
            listed = "; ".join(f"{name}: {what}" for name, what in known.items()) or "none"
            raise ArgumentError(f"The launcher {launcher!r} has no option {', '.join(unknown)}. Options: {listed}.")
        for name, value in self.options.items():
            if not value.isprintable():
                raise ArgumentError(f"The option {name} should be one line of printable characters, given: {value!r}.")


@dataclass(frozen=True, kw_only=True)
class PlannedFile:
    """A file that a plan needs, for review."""

    name: str
    text: str

    def __post_init__(self) -> None:
        if PurePath(self.name).name != self.name:
            raise ArgumentError(f"A planned file must have a plain name, given: {self.name!r}.")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The actions of a launcher: files, and the commands that submit them. It contains no secrets.

    Example:
        >>> job = JobSpec(command=("true",))
        >>> print(Plan(launcher="x", job=job, files=(), commands=(("run", "a b"),)).text())
        # run 'a b'
    """

    launcher: str
    job: JobSpec
    files: tuple[PlannedFile, ...]
    commands: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        """Returns the whole plan for `--dry-run`: each file under its name, each command as a comment."""
        import shlex

        parts = [f"# ---- {file.name}\n{file.text.rstrip()}" for file in self.files]
        return "\n".join([*parts, *(f"# {shlex.join(command)}" for command in self.commands)])


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The state of a job.

    Args:
        phase: the phase. "resumable" means that the job has ended, and a new start continues from the newest
            checkpoint.
        restarts: how often its processes were restarted.
        why: the reason for an unsuccessful end, in words.
    """

    phase: Phase
    restarts: int = 0
    why: str = ""

    @property
    def ended(self) -> bool:
        """Whether no process is running or will run."""
        return self.phase in ("succeeded", "resumable", "failed")

    @property
    def exit_status(self) -> int:
        """The exit status of `estimator launch`: 0 for done, 75 for resumable, 1 for failed."""
        return {"succeeded": 0, "resumable": 75}.get(self.phase, 1)


@runtime_checkable
class Launcher(Protocol):
    """Starts the processes of a job, with the tools of its engine.

    Each process of a job finds the others through the scheduler's own variables, or through JAX_COORDINATOR_ADDRESS,
    JAX_NUM_PROCESSES and JAX_PROCESS_ID, never through both. It also gets ESTIMATOR_RUN_SECRET: the same in all
    processes of the job, and different in every other job. No command line, plan or log shows the secret. Exit status 0
    means done. After 75, a signal or an abort, processes are restarted up to max_restarts times. Any other status means
    failed.
    """

    @property
    def name(self) -> str:
        """The name for `estimator launch --on`."""
        ...

    def plan(self, job: JobSpec) -> Plan:
        """Returns the plan of a job. It is a pure function that does not write, start or query anything.

        Raises:
            ArgumentError: the job requires something unsupported, or has an unknown option.
        """
        ...

    def submit(self, plan: Plan) -> str:
        """Executes a plan and returns the id of the job.

        Raises:
            LaunchError: the engine is missing, or refuses the job.
        """
        ...

    def status(self, job_id: str) -> JobStatus:
        """Returns the state of the job.

        Args:
            job_id: the id of the job.

        Raises:
            LaunchError: there is no such job.
        """
        ...

    def stop(self, job_id: str, grace_secs: float) -> None:
        """Sends SIGTERM to the processes, so that they save and end, and kills them after the grace time.

        No restart follows.

        Args:
            job_id: the id of the job.
            grace_secs: the grace time in seconds.
        """
        ...

    def logs(self, job_id: str, process: int) -> Iterator[str]:
        """Yields the log lines of a process from the beginning, including those after restarts, until the job ends.

        Args:
            job_id: the id of the job.
            process: the index of the process; for the evaluator, the number of training processes.
        """
        ...
