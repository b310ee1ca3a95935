"""The launcher of Ray: Ray Train places the processes, notices lost ones, and starts all of them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import resources
from importlib.util import find_spec
from string import Template
from typing import Any, Final

from estimator_core.errors import ArgumentError
from estimator_launchers.contract import JobSpec, JobStatus, Plan, PlannedFile
from estimator_launchers.environment import virtual_devices
from estimator_launchers.errors import LaunchError
from estimator_launchers.jobs import SupervisedJobs

#: The options of a job for this launcher, with their descriptions.
OPTIONS: Final[Mapping[str, str]] = {
    "accelerator-type": "a type of card, for example H100: only nodes that have it",
    "address": "of the cluster; default: RAY_ADDRESS, else a running one of this machine, else a new one",
    "cpus": "processors of each process (default: 1)",
    "gpus": "cards of each process (default: 0)",
    "placement": "PACK, SPREAD, STRICT_PACK or STRICT_SPREAD; default: by --hosts",
    "working-dir": "a folder that Ray copies to every node, for clusters without a shared file system",
}
_PLACEMENTS = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")


class RayLauncher:
    """Runs a job through Ray Train. A driver process on this machine follows the job, and Ray runs its processes.

    Args:
        folder: the folder of the jobs. None: `estimator/jobs` in the user's folder for state.

    Example:
        >>> plan = RayLauncher().plan(JobSpec(command=("python", "train.py"), processes=2, hosts=2))
        >>> [line.strip() for line in plan.files[0].text.splitlines() if "placement" in line]
        ["placement_strategy='STRICT_SPREAD',"]
    """

    name = "ray"

    def __init__(self, folder: str | None = None) -> None:
        self._jobs = SupervisedJobs(self.name, folder)

    def plan(self, job: JobSpec) -> Plan:
        """Returns the program of the driver.

        Raises:
            ArgumentError: an unknown option, or a value that Ray does not accept.
        """
        job.check_options(self.name, OPTIONS)
        if job.time_limit_secs is not None:
            raise ArgumentError("Ray has no time limit for jobs. Leave --time-limit-secs out.")
        file = PlannedFile(name=f"{job.name}_ray.py", text=_script(job))
        return Plan(
            launcher=self.name, job=job, files=(file,), commands=(("python", file.name, f"JOBS/{job.name}-ID"),)
        )

    def submit(self, plan: Plan) -> str:
        """Starts the driver, and returns the id of the job.

        Raises:
            LaunchError: Ray is not installed here, or its cluster is not reachable.
        """
        if find_spec("ray") is None or find_spec("ray.train") is None:
            raise LaunchError("Ray is not installed here: pip install 'estimator-launchers[ray]'")
        return self._jobs.submit(plan, (plan.files[0].name,))

    def status(self, job_id: str) -> JobStatus:
        """Returns the last state that the driver wrote. If the driver is gone, the job can be resumed.

        Raises:
            LaunchError: there is no such job.
        """
        return self._jobs.status(job_id)

    def stop(self, job_id: str, grace_secs: float) -> None:
        """Sends SIGTERM to the driver, which passes it on, and waits for the end."""
        self._jobs.stop(job_id, grace_secs)

    def logs(self, job_id: str, process: int) -> Iterator[str]:
        """Follows the log of a process, which Ray sends to this machine."""
        return self._jobs.logs(job_id, process)

    def events(self, job_id: str) -> Iterator[str]:
        """Yields the messages of the driver."""
        return self._jobs.events(job_id)


def _script(job: JobSpec) -> str:
    options = job.options
    gpus = _number(options.get("gpus", ""), "gpus")
    cpus = _number(options.get("cpus", "1"), "cpus")
    placement = options.get("placement", _placement(job))
    if placement not in _PLACEMENTS:
        raise ArgumentError(f"--option placement={placement}: use one of {', '.join(_PLACEMENTS)}.")
    least = job.min_processes
    scaling: dict[str, Any] = {
        "num_workers": job.processes if least in (None, job.processes) else (least, job.processes),
        "use_gpu": bool(gpus),
        "resources_per_worker": {"CPU": cpus, **({"GPU": gpus} if gpus else {})},
        "placement_strategy": placement,
    }
    if "accelerator-type" in options:
        scaling["accelerator_type"] = options["accelerator-type"]
    cluster: dict[str, Any] = {"address": options["address"]} if "address" in options else {}
    if "working-dir" in options:
        cluster["runtime_env"] = {"working_dir": options["working-dir"]}
    given = {} if gpus else virtual_devices(job, {})
    values = {one.name: getattr(job, one.name) for one in fields(job)} | {"env": {**job.env, **given}}
    template = Template((resources.files("estimator_launchers") / "ray_job.py.tmpl").read_text(encoding="utf-8"))
    return template.substitute(
        name=f"{job.name}_ray.py",
        job=_arguments(values, 8),
        scaling=_arguments(scaling, 8),
        cluster=repr(cluster),
        evaluator=repr({"num_cpus": cpus}),
    )


def _placement(job: JobSpec) -> str:
    strict = "" if job.min_processes is not None else "STRICT_"  # fewer nodes may remain
    if job.hosts == 1:
        return f"{strict}PACK"
    return f"{strict}SPREAD" if job.hosts == job.processes else "SPREAD"


def _number(text: str, name: str) -> int:
    if text and not text.isdigit():
        raise ArgumentError(f"--option {name}={text}: write a whole number.")
    return int(text or 0)


def _arguments(values: Mapping[str, Any], indent: int) -> str:
    return "\n".join(f"{' ' * indent}{name}={value!r}," for name, value in values.items())
