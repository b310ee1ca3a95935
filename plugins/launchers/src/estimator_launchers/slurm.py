"""The launcher of Slurm: a batch script that starts the processes with srun, and requeues itself if it can continue."""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Final

from estimator_core.errors import ArgumentError
from estimator_launchers.contract import JobSpec, JobStatus, Plan, PlannedFile
from estimator_launchers.environment import virtual_devices
from estimator_launchers.errors import LaunchError
from estimator_launchers.following import Kept, follow_file
from estimator_launchers.outcome import in_words
from estimator_launchers.slurm_notes import told

#: The options of a job that are passed to sbatch, with their descriptions.
OPTIONS: Final[Mapping[str, str]] = {
    "account": "the account to charge",
    "array": "independent runs, for example 0-7: each gets SLURM_ARRAY_TASK_ID",
    "constraint": "features of the nodes",
    "cpus-per-task": "processors of each process",
    "exclude": "nodes to exclude",
    "gpus-per-node": "cards of each node, which its processes share",
    "gres": "for example gpu:8",
    "mem": "memory of each node",
    "partition": "the queue",
    "qos": "quality of service",
    "reservation": "a reservation",
}
#: The seconds between two queries about one job, which several threads follow, and between two looks at the notes.
_ASK_SECS, _LOOK_SECS = 2.0, 0.5
#: The longest time until a requeued job is in the queue again.
_REQUEUE_SECS = 60.0
#: The messages of Slurm commands if the controller does not answer.
_AWAY = ("Unable to contact", "timed out", "Connection refused")
_RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT")


class SlurmLauncher:
    """Submits batch jobs. jax finds the processes through the variables of Slurm.

    Args:
        folder: the folder for logs and secrets of jobs, on a file system that all nodes share. None: `estimator-jobs`
            in the working directory.

    Example:
        >>> plan = SlurmLauncher("/shared/jobs").plan(JobSpec(command=("python", "train.py"), processes=4, hosts=2))
        >>> [line for line in plan.files[0].text.splitlines() if "BATCH --nt" in line]
        ['#SBATCH --ntasks=4', '#SBATCH --ntasks-per-node=2']
    """

    name = "slurm"

    def __init__(self, folder: str | None = None) -> None:
        self._folder = Path.cwd() / "estimator-jobs" if folder is None else Path(folder).absolute()
        self._asked = Kept(self._ask_states, _ASK_SECS)
        self._known = set[str]()  # jobs that exist: submitted here, or reported by the controller

    def plan(self, job: JobSpec) -> Plan:
        """Returns the batch script.

        Raises:
            ArgumentError: the job has an unknown option, an image, or min_processes.
        """
        job.check_options(self.name, OPTIONS)
        job.check_whole(self.name)
        if job.image:
            raise ArgumentError(
                "Slurm by itself does not run container images. Put the image into the command: "
                "-- apptainer exec IMAGE python ..."
            )
        file = PlannedFile(name=f"{job.name}.sbatch", text=_script(job, self._folder))
        return Plan(launcher=self.name, job=job, files=(file,), commands=(("sbatch", "--parsable", file.name),))

    def submit(self, plan: Plan) -> str:
        """Passes the script to sbatch, and returns the id of the job.

        Raises:
            LaunchError: sbatch is missing, or refuses the script.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        said = _slurm("sbatch", "--parsable", given=plan.files[0].text)
        job_id = said.strip().partition(";")[0]
        self._known.add(job_id)
        return job_id

    def status(self, job_id: str) -> JobStatus:
        """Returns the state in the queue, or the state that the script wrote when it ended.

        Raises:
            LaunchError: there is no such job.
        """
        states = self._asked.of(job_id)
        restarts = self._number(job_id, "restarts")
        if any(state in _RUNNING for state in states):
            return JobStatus(phase="running", restarts=restarts)
        if any(state in ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT") for state in states):
            return JobStatus(phase="pending", restarts=restarts)
        folders = self._folders(job_id)
        if any(_just_requeued(folder) for folder in folders):
            return JobStatus(phase="pending", restarts=restarts)
        if not folders and not states:
            raise LaunchError(f"Slurm has no job {job_id!r}, and {self._folder} has no files of it.")
        outcomes = [self._number(folder.name, "outcome", missing=75) for folder in folders] or [75]
        worst = next((code for code in outcomes if code not in (0, 75)), max(outcomes))
        if worst == 0:
            return JobStatus(phase="succeeded", restarts=restarts)
        phase = "resumable" if worst == 75 else "failed"
        lines = [line for folder in folders for line in _read(folder / "why").splitlines()]
        why = "; ".join(f"process {index}: {in_words(int(code))}" for index, code in map(str.split, lines))
        return JobStatus(phase=phase, restarts=restarts, why=why or "it was cancelled, or Slurm has lost it")

    def stop(self, job_id: str, grace_secs: float) -> None:
        """Sends SIGTERM to the processes, without a requeue, and calls scancel after the grace.

        Raises:
            LaunchError: the controller does not answer.
        """
        for folder in self._folders(job_id):
            (folder / "stop").touch()
        _slurm("scancel", "--signal=TERM", "--batch", job_id, check=False)
        deadline = time.monotonic() + grace_secs
        while not self.status(job_id).ended and time.monotonic() < deadline:
            if self.status(job_id).phase == "pending":
                break
            time.sleep(0.5)
        if not self.status(job_id).ended:
            _slurm("scancel", job_id, check=False)

    def logs(self, job_id: str, process: int) -> Iterator[str]:
        """Follows the log of a process."""
        return follow_file(self._folder / job_id / f"{process}.log", lambda: self.status(job_id).ended)

    def events(self, job_id: str) -> Iterator[str]:
        """Yields which processes have ended or are lost, on which node and how, and the time until the restart."""
        said: set[str] = set()
        while True:
            last = self.status(job_id).ended  # queried first, so that everything before the end is reported
            for folder in self._folders(job_id):
                run = "" if folder.name == job_id else f"{folder.name}: "
                for key, line in told(folder):
                    if run + key not in said:
                        said.add(run + key)
                        yield f"estimator launch: {run}{line}"
            if last:
                return
            time.sleep(_LOOK_SECS)

    def _ask_states(self, job_id: str) -> list[str]:
        command = ["squeue", "--noheader", "--states=all", f"--jobs={job_id}", "--format=%T"]
        if shutil.which(command[0]) is None:
            raise LaunchError("squeue is not installed here. Run this on a login node of Slurm.")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 and "Invalid job id" not in done.stderr:
            if job_id not in self._known and not self._folders(job_id):
                raise LaunchError(f"squeue gets no answer about a job {job_id!r}: {done.stderr.strip()}")
            return ["RUNNING"]  # the controller is busy, so the job counts as running
        states = done.stdout.split()
        self._known.update([job_id] if states else [])
        return states

    def _folders(self, job_id: str) -> list[Path]:
        """Returns the folder of the job, or of each run of an array."""
        own = self._folder / job_id
        return [own] if own.is_dir() else sorted(self._folder.glob(f"{job_id}_*"))

    def _number(self, folder: str, name: str, missing: int = 0) -> int:
        text = _read(self._folder / folder / name)
        return int(text) if text.strip() else missing


def _script(job: JobSpec, folder: Path) -> str:
    place = str(folder).replace("%", "%%")  # Slurm replaces %x by the name of the job
    settings = {
        "job-name": job.name,
        "nodes": job.hosts,
        "ntasks": job.processes,
        "ntasks-per-node": job.processes_per_host,
        "open-mode": "append",
        "output": f"{place}/%x-%A-%a.out" if "array" in job.options else f"{place}/%x-%j.out",
        "signal": f"B:TERM@{math.ceil(job.grace_secs)}",
        **({"time": math.ceil(job.time_limit_secs / 60)} if job.time_limit_secs is not None else {}),
        **job.options,
    }
    # sbatch reads quotes like a shell. Outside them, a space ends a value, and # begins a comment.
    directives = [f"#SBATCH --{name}={shlex.quote(str(value))}" for name, value in settings.items()]
    directives.append("#SBATCH --requeue" if job.max_restarts else "#SBATCH --no-requeue")
    variables = {**job.env, **({} if "gres" in job.options or "gpus-per-node" in job.options else virtual_devices(job))}
    exports = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    template = Template((resources.files("estimator_launchers") / "slurm.sh.tmpl").read_text(encoding="utf-8"))
    return template.substitute(
        directives="\n".join(directives),
        exports="\n".join(exports),
        folder=shlex.quote(str(folder)),
        command=shlex.join(job.command),
        processes=job.processes,
        max_restarts=job.max_restarts,
        grace=math.ceil(job.grace_secs),
        evaluator=int(job.evaluator),
    )


def _slurm(*command: str, given: str | None = None, check: bool = True) -> str:
    if shutil.which(command[0]) is None:
        raise LaunchError(f"{command[0]} is not installed here. Run this on a login node of Slurm.")
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    away = any(sign in done.stderr for sign in _AWAY)
    if done.returncode != 0 and (check or away):
        raise LaunchError(
            f"{command[0]} {'gets no answer' if away else 'refuses'}: {done.stderr.strip() or done.stdout.strip()}"
        )
    return done.stdout if done.returncode == 0 else ""


def _just_requeued(folder: Path) -> bool:
    """Returns whether the job was just requeued. Slurm reports it as cancelled until it is in the queue again."""
    mark = folder / "requeued"
    return mark.exists() and time.time() - mark.stat().st_mtime < _REQUEUE_SECS


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""
