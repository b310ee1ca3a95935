"""The contract of a launcher: what starts the processes of a run, and starts them again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, Literal, Protocol, runtime_checkable

from estimator_core.errors import ArgumentError

Phase = Literal["pending", "running", "succeeded", "resumable", "failed"]


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """A run of several processes, whoever starts them.

    Args:
        command: what each process runs.
        processes: how many train together.
        name: of the job: lower-case letters, digits and hyphens.
        hosts: machines that the processes are spread over, evenly.
        devices: cards of each process; None: one process of a machine has all, several share them. Where there are
            no cards, virtual CPU devices.
        evaluator: one further process beside those that train, in the role of the evaluator.
        env: further environment variables of each process; no secrets, which would be seen in plans.
        image: the container image, where the launcher needs one.
        max_restarts: how often all are started again after an end from which the run can go on.
        grace_secs: between a request to stop, or another process's failure, and the end by force.
        time_limit_secs: after which the scheduler ends the job; None: its own limit.
        model_dir: where the run writes, where the launcher needs to know: for TensorBoard.
        attached: the job ends with the process that submits it, where the launcher can see to that.
        options: what only this launcher knows, by name.

    Raises:
        ArgumentError: a value that cannot be.

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
    grace_secs: float = 60.0
    time_limit_secs: float | None = None
    model_dir: str = ""
    attached: bool = False
    options: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if not self.command:
            raise ArgumentError("There is no command to run. Give it after --, for example -- python train.py")
        if self.processes < 1 or self.hosts < 1 or self.processes % self.hosts:
            raise ArgumentError(
                f"{self.processes} processes on {self.hosts} hosts cannot be: there must be at least one of each, and "
                "as many processes on each host."
            )
        if self.devices is not None and self.devices < 1:
            raise ArgumentError(f"devices should be at least 1, given: {self.devices}.")
        if self.max_restarts < 0 or self.grace_secs <= 0:
            raise ArgumentError(
                f"max_restarts must not be negative and grace_secs must be positive, given: {self.max_restarts} and "
                f"{self.grace_secs}."
            )
        if not self.name.replace("-", "").isalnum() or self.name != self.name.lower() or self.name[0] == "-":
            raise ArgumentError(f"name should be of lower-case letters, digits and hyphens, given: {self.name!r}.")

    @property
    def processes_per_host(self) -> int:
        """How many processes run on each machine."""
        return self.processes // self.hosts

    def to_json(self) -> str:
        """The job as text, for a process that supervises it."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> JobSpec:
        """What `to_json` wrote."""
        given: dict[str, Any] = json.loads(text)
        given["command"] = tuple(given["command"])
        return cls(**given)

    def check_options(self, launcher: str, known: Mapping[str, str]) -> None:
        """Refuses options that the launcher does not know.

        Raises:
            ArgumentError: lists those there are, with what each is.
        """
        unknown = sorted(set(self.options) - set(known))
        if unknown:
            listed = "; ".join(f"{name}: {what}" for name, what in known.items()) or "none"
            raise ArgumentError(f"The launcher {launcher!r} has no option {', '.join(unknown)}. Options: {listed}.")


@dataclass(frozen=True, kw_only=True)
class PlannedFile:
    """A file that a plan needs, for review."""

    name: str
    text: str

    def __post_init__(self) -> None:
        if PurePath(self.name).name != self.name:
            raise ArgumentError(f"A planned file has a plain name, given: {self.name!r}.")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a launcher will do: files, and the commands that submit them. It holds no secret.

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
        """The whole plan for `--dry-run`: each file under its name, each command as a comment."""
        import shlex

        parts = [f"# ---- {file.name}\n{file.text.rstrip()}" for file in self.files]
        return "\n".join([*parts, *(f"# {shlex.join(command)}" for command in self.commands)])


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """How a job stands.

    Args:
        phase: "resumable": it has ended, and starting it again goes on from the newest checkpoint.
        restarts: how often its processes were started again.
        why: of an end that is no success, in words.
    """

    phase: Phase
    restarts: int = 0
    why: str = ""

    @property
    def ended(self) -> bool:
        """Whether no process runs or will run."""
        return self.phase in ("succeeded", "resumable", "failed")

    @property
    def exit_status(self) -> int:
        """What `estimator launch` returns for it: 0 done, 75 can go on, 1 failed."""
        return {"succeeded": 0, "resumable": 75}.get(self.phase, 1)


@runtime_checkable
class Launcher(Protocol):
    """Starts the processes of a job, by the means of its engine.

    Each process of a job gets either what tells jax of the others (the scheduler's own variables), or
    JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID, never both; and ESTIMATOR_RUN_SECRET, the same in all
    processes of the job and in no other job, which stands in no command line, plan or log. Exit statuses: 0 done; 75,
    a signal or an abort: started again, as often as max_restarts says; another one: failed.
    """

    @property
    def name(self) -> str:
        """What `estimator launch --on` says."""
        ...

    def plan(self, job: JobSpec) -> Plan:
        """What would be done; pure: nothing is written, started or asked.

        Raises:
            ArgumentError: the job asks for what this launcher cannot do, or has an option that it does not know.
        """
        ...

    def submit(self, plan: Plan) -> str:
        """Does it; returns the job's id.

        Raises:
            LaunchError: the engine is not here, or refuses.
        """
        ...

    def status(self, job_id: str) -> JobStatus:
        """How the job stands.

        Raises:
            LaunchError: there is no such job.
        """
        ...

    def stop(self, job_id: str, grace_secs: float) -> None:
        """Asks its processes to save and end, by SIGTERM, and by force after the grace; no restart follows."""
        ...

    def logs(self, job_id: str, process: int) -> Iterator[str]:
        """Lines that a process writes, from the beginning, with what it writes after a restart; ends with the job.

        Args:
            job_id: of the job.
            process: its index; of the evaluator, the number of those that train.
        """
        ...
