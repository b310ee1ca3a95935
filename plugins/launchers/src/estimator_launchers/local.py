"""The launcher of this machine: child processes under a supervisor."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from estimator_core.errors import ArgumentError
from estimator_launchers.contract import JobSpec, JobStatus, Plan, PlannedFile
from estimator_launchers.jobs import SupervisedJobs

_SUPERVISOR = ("-m", "estimator_launchers.supervise")


class LocalLauncher:
    """Runs the processes of a job on this machine. A supervisor process watches and restarts them.

    Args:
        folder: the folder of the jobs. None: `estimator/jobs` in the user's folder for state.

    Example:
        >>> launcher = LocalLauncher()
        >>> print(launcher.plan(JobSpec(command=("python", "train.py"), processes=2)).files[0].name)
        job.json
    """

    name = "local"

    def __init__(self, folder: str | None = None) -> None:
        self._jobs = SupervisedJobs(self.name, folder)

    def plan(self, job: JobSpec) -> Plan:
        """Returns the job in the form that the supervisor reads.

        Raises:
            ArgumentError: the job has several hosts, or any option.
        """
        job.check_options(self.name, {})
        if job.hosts > 1:
            raise ArgumentError(
                f"{job.hosts} hosts: the launcher 'local' uses only this machine. Use --on slurm, kubernetes or ray."
            )
        command = (sys.executable, *_SUPERVISOR, f"JOBS/{job.name}-ID")
        file = PlannedFile(name="job.json", text=job.to_json())
        return Plan(launcher=self.name, job=job, files=(file,), commands=(command,))

    def submit(self, plan: Plan) -> str:
        """Starts the supervisor, and returns the id of the job."""
        return self._jobs.submit(plan, _SUPERVISOR)

    def status(self, job_id: str) -> JobStatus:
        """Returns the last state that the supervisor wrote. If the supervisor is gone, the job can be resumed.

        Raises:
            LaunchError: there is no such job.
        """
        return self._jobs.status(job_id)

    def stop(self, job_id: str, grace_secs: float) -> None:
        """Sends SIGTERM to the supervisor, which passes it on, and waits for the end."""
        self._jobs.stop(job_id, grace_secs)

    def kill(self, job_id: str) -> None:
        """Kills the processes at once."""
        self._jobs.kill(job_id)

    def logs(self, job_id: str, process: int) -> Iterator[str]:
        """Follows the log of a process."""
        return self._jobs.logs(job_id, process)

    def events(self, job_id: str) -> Iterator[str]:
        """Yields the messages of the supervisor."""
        return self._jobs.events(job_id)
