"""Jobs that a supervisor process of this machine runs: their folder, their state, their logs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from estimator_core.storage import draft_of
from estimator_launchers.contract import JobStatus, Plan
from estimator_launchers.environment import SECRET, new_secret
from estimator_launchers.errors import LaunchError
from estimator_launchers.following import follow_file

#: The signal that makes a supervisor kill the processes of its job at once. SIGTERM, however often, requests an end.
KILL_SIGNAL = signal.SIGUSR1
#: The supervisors that this process has started. A later `status` reaps those that have ended.
_SUPERVISORS: list[subprocess.Popen[bytes]] = []


class JobFolder:
    """The files that a supervisor writes about its job: `state.json`, `launcher.log`, and a log for each process.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, status: JobStatus) -> JobStatus:
        """Replaces the state, and returns it."""
        with draft_of(self.path / "state.json") as draft:
            draft.write_text(json.dumps({**asdict(status), "pid": os.getpid(), "born": _born(os.getpid())}))
        return status

    def say(self, text: str) -> None:
        """Adds a message to `launcher.log`, which `estimator launch` shows."""
        with (self.path / "launcher.log").open("a") as log:
            log.write(f"estimator launch: {text}\n")


class SupervisedJobs:
    """Starts the supervisor of each job, and reads the state that it writes.

    Args:
        engine: the name of the launcher, for messages.
        folder: the folder of the jobs. None: `estimator/jobs` in the user's folder for state.
    """

    def __init__(self, engine: str, folder: str | None) -> None:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._engine = engine
        self._folder = Path(folder) if folder is not None else Path(state, "estimator", "jobs")

    def submit(self, plan: Plan, script: Sequence[str]) -> str:
        """Writes the files of a plan, and starts its supervisor.

        Args:
            plan: the plan.
            script: the arguments of Python that start the supervisor: `-m` and a module, or the name of a planned file.
                The supervisor receives the folder, and the id of the process with which the job ends (0: none).

        Raises:
            LaunchError: the supervisor does not start.
        """
        job_id = f"{plan.job.name}-{uuid.uuid4().hex[:12]}"
        folder = self._folder / job_id
        folder.mkdir(parents=True, mode=0o700)
        for file in plan.files:
            (folder / file.name).write_text(file.text)
        (folder / "job.json").write_text(plan.job.to_json())
        for process in range(plan.job.processes + plan.job.evaluator):
            (folder / f"{process}.log").touch()
        (folder / "launcher.log").touch()
        words = [str(folder / word) if (folder / word).is_file() else word for word in script]
        parent = os.getpid() if plan.job.attached else 0
        with (folder / "supervisor.err").open("wb") as errors:
            supervisor = subprocess.Popen(
                [sys.executable, *words, str(folder), str(parent)],
                env={**os.environ, SECRET: new_secret()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        _SUPERVISORS.append(supervisor)
        while self._state(job_id) is None:
            if supervisor.poll() is not None and self._state(job_id) is None:
                raise LaunchError(f"The supervisor of the job did not start: {(folder / 'supervisor.err').read_text()}")
            time.sleep(0.05)
        return job_id

    def status(self, job_id: str) -> JobStatus:
        """Returns the last state that the supervisor wrote. If the supervisor is gone, the job can be resumed.

        Raises:
            LaunchError: there is no such job.
        """
        state = self._state(job_id)
        if state is None:
            return JobStatus(phase="pending")
        _SUPERVISORS[:] = [one for one in _SUPERVISORS if one.poll() is None]
        status, supervised = _status_in(state)
        if status.ended or supervised:
            return status
        found, _ = _status_in(self._state(job_id) or state)  # it may have ended in the meantime
        return found if found.ended else JobStatus(phase="resumable", why="its supervisor is gone")

    def stop(self, job_id: str, grace_secs: float) -> None:
        """Sends SIGTERM to the supervisor, which passes it on, and waits for the end."""
        deadline = time.monotonic() + grace_secs
        while not self.status(job_id).ended:
            state = self._state(job_id)
            if state is not None:
                _send(int(state["pid"]), signal.SIGTERM)
            if time.monotonic() > deadline:
                return  # the supervisor kills the processes after the grace time of the job
            time.sleep(0.1)

    def kill(self, job_id: str) -> None:
        """Makes the supervisor kill the processes at once. Only for a supervisor that handles KILL_SIGNAL."""
        state = self._state(job_id)
        if state is not None and not self.status(job_id).ended:
            _send(int(state["pid"]), KILL_SIGNAL)

    def logs(self, job_id: str, process: int) -> Iterator[str]:
        """Follows the log of a process."""
        return follow_file(self._job_folder(job_id) / f"{process}.log", lambda: self.status(job_id).ended)

    def events(self, job_id: str) -> Iterator[str]:
        """Yields the messages of the supervisor."""
        return follow_file(self._job_folder(job_id) / "launcher.log", lambda: self.status(job_id).ended)

    def _state(self, job_id: str) -> dict[str, Any] | None:
        path = self._job_folder(job_id) / "state.json"
        return json.loads(path.read_text()) if path.exists() else None

    def _job_folder(self, job_id: str) -> Path:
        folder = self._folder / job_id
        if not job_id or not (folder / "job.json").is_file():
            raise LaunchError(f"There is no {self._engine} job {job_id!r} in {self._folder}.")
        return folder


def _status_in(state: dict[str, Any]) -> tuple[JobStatus, bool]:
    """Returns the status that a supervisor wrote, and whether it runs. After a reboot, its id may be reused."""
    kept = {name: value for name, value in state.items() if name not in ("pid", "born")}
    found = _born(state["pid"])
    return JobStatus(**kept), found is not None and state.get("born") in (None, found)


def _born(pid: int) -> str | None:
    """Returns the start of a process in ticks since the boot. "" if that is not known, None if the process is gone."""
    if not Path("/proc/self").exists():
        return "" if _send(pid, 0) else None
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may end while its file is read
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if state == "Z" else fields[18]  # a zombie counts as gone
    return None


def _send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
