"""The launcher of this machine: child processes under a supervisor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_launchers.contract import JobSpec, JobStatus, Plan, PlannedFile
from estimator_launchers.environment import SECRET, new_secret
from estimator_launchers.errors import LaunchError
from estimator_launchers.following import follow_file

#: The supervisors of this process: a later `status` waits for each that has ended.
_SUPERVISORS: list[subprocess.Popen[bytes]] = []


class LocalLauncher:
    """Runs the processes of a job on this machine; a process of its own watches them and starts them again.

    Args:
        folder: the folder of the jobs; None: `estimator/jobs` in the user's folder for state.

    Example:
        >>> launcher = LocalLauncher()
        >>> print(launcher.plan(JobSpec(command=("python", "train.py"), processes=2)).files[0].name)
        job.json
    """

    name = "local"

    def __init__(self, folder: str | None = None) -> None:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._folder = Path(folder) if folder is not None else Path(state, "estimator", "jobs")

    def plan(self, job: JobSpec) -> Plan:
        """The job in the form that the supervisor reads.

        Raises:
            ArgumentError: several hosts, or any option.
        """
        job.check_options(self.name, {})
        if job.hosts > 1:
            raise ArgumentError(
                f"{job.hosts} hosts: the launcher 'local' has this machine only. Use --on slurm, kubernetes or ray."
            )
        command = (sys.executable, "-m", "estimator_launchers.supervise", f"JOBS/{job.name}-ID")
        file = PlannedFile(name="job.json", text=job.to_json())
        return Plan(launcher=self.name, job=job, files=(file,), commands=(command,))

    def submit(self, plan: Plan) -> str:
        """Starts the supervisor."""
        job_id = f"{plan.job.name}-{uuid.uuid4().hex[:12]}"
        folder = self._folder / job_id
        folder.mkdir(parents=True, mode=0o700)
        (folder / "job.json").write_text(plan.job.to_json())
        for process in range(plan.job.processes + plan.job.evaluator):
            (folder / f"{process}.log").touch()
        (folder / "launcher.log").touch()
        parent = os.getpid() if plan.job.attached else 0
        with (folder / "supervisor.err").open("wb") as errors:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "estimator_launchers.supervise", str(folder), str(parent)],
                env={**os.environ, SECRET: new_secret()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        _SUPERVISORS.append(supervisor)
        while self._state(job_id) is None:
            if supervisor.poll() is not None and self._state(job_id) is None:
                raise LaunchError(
                    f"The supervisor of the job does not start: {(folder / 'supervisor.err').read_text()}"
                )
            time.sleep(0.05)
        return job_id

    def status(self, job_id: str) -> JobStatus:
        """The last state that the supervisor wrote. If the supervisor is gone, the job can be resumed.

        Raises:
            LaunchError: there is no such job.
        """
        state = self._state(job_id)
        if state is None:
            return JobStatus(phase="pending")
        _SUPERVISORS[:] = [one for one in _SUPERVISORS if one.poll() is None]
        pid = state.pop("pid")
        status = JobStatus(**state)
        if status.ended or _alive(pid):
            return status
        state = self._state(job_id) or {}  # it may have ended meanwhile
        state.pop("pid", None)
        found = JobStatus(**state)
        return found if found.ended else JobStatus(phase="resumable", why="its supervisor is gone")

    def stop(self, job_id: str, grace_secs: float) -> None:
        """Sends SIGTERM to the supervisor, which passes it on; waits for the end."""
        deadline = time.monotonic() + grace_secs
        while not self.status(job_id).ended:
            state = self._state(job_id)
            if state is not None:
                _send(int(state["pid"]), signal.SIGTERM)
            if time.monotonic() > deadline:
                return  # the supervisor ends the processes by force after the job's own grace
            time.sleep(0.1)

    def logs(self, job_id: str, process: int) -> Iterator[str]:
        """Follows the log of a process."""
        return follow_file(self._job_folder(job_id) / f"{process}.log", lambda: self.status(job_id).ended)

    def events(self, job_id: str) -> Iterator[str]:
        """The messages of the supervisor."""
        return follow_file(self._job_folder(job_id) / "launcher.log", lambda: self.status(job_id).ended)

    def _state(self, job_id: str) -> dict[str, Any] | None:
        path = self._job_folder(job_id) / "state.json"
        return json.loads(path.read_text()) if path.exists() else None

    def _job_folder(self, job_id: str) -> Path:
        folder = self._folder / job_id
        if not job_id or not (folder / "job.json").is_file():
            raise LaunchError(f"There is no local job {job_id!r} in {self._folder}.")
        return folder


def _alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():  # a process that ended and was not waited for counts as gone too
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return not Path("/proc/self").exists() and _send(pid, 0)


def _send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
