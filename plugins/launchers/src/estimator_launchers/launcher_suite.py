"""The suite for launchers."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError, EstimatorError
from estimator_core.testing import Suite
from estimator_launchers.contract import JobSpec, JobStatus, Launcher, Plan
from estimator_launchers.environment import SECRET

_SECRET_LENGTH = 32
#: Prints the length and a hash of the secret, the place of the process, a variable of the job, and a line on standard
#: error.
_TELL = f"""
import hashlib, os, sys
secret, place = os.environ[{SECRET!r}], os.environ.get("JAX_PROCESS_ID", os.environ.get("SLURM_PROCID"))
print(len(secret), hashlib.sha256(secret.encode()).hexdigest(), place, os.environ["ACME_WORD"], flush=True)
print("to standard error", file=sys.stderr)
"""
#: Process 1 fails, and the other one waits for it.
_ONE_FAILS = """
import os, sys, time
time.sleep(600) if os.environ.get("JAX_PROCESS_ID", os.environ.get("SLURM_PROCID")) == "0" else sys.exit(3)
"""
_DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""
#: Fails with the given status at the first attempt, and succeeds at the second. It records its attempts in a file.
_ONCE = """
import os, pathlib, sys
path = pathlib.Path(sys.argv[1] + "-" + os.environ.get("JAX_PROCESS_ID", os.environ.get("SLURM_PROCID", "0")))
path.write_text(path.read_text() + "x" if path.exists() else "x")
print("attempt", len(path.read_text()))
sys.exit(int(sys.argv[2]) if len(path.read_text()) == 1 else 0)
"""
_UNTIL_TERM = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("saved", flush=True) or 75))
print("ready", flush=True)
time.sleep(600)
"""


class LauncherSuite(Suite):
    """Proves that a launcher plans without acting, starts every process, and reports their end correctly.

    If `reachable` is False, only tests without an engine run.

    Example:
        >>> from estimator_launchers import LocalLauncher
        >>> class TestLocal(LauncherSuite):
        ...     def make(self):
        ...         return LocalLauncher()
    """

    #: Whether jobs can be submitted from the machine of the tests.
    reachable = True
    #: The fields of JobSpec that a job needs besides a command.
    needs: dict[str, object] = {}  # noqa: RUF012 - replaced by a subclass, never changed
    #: Longer than the duration of any of the small jobs.
    patience_secs = 120.0

    def make(self) -> Launcher:
        """Returns the launcher. It is called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def job(self, code: str, *arguments: str, **fields: object) -> JobSpec:
        """Returns a job of two processes that run Python code."""
        values = {"processes": 2, "grace_secs": 20.0, **self.needs, **fields}
        return JobSpec(command=(sys.executable, "-c", code, *arguments), **values)  # type: ignore[arg-type]

    def test_is_a_launcher(self) -> None:
        """It has the methods of Launcher and a name in lower case."""
        launcher = self.make()
        assert isinstance(launcher, Launcher), f"{launcher!r} lacks a method of Launcher"
        assert launcher.name.islower()

    def test_plans_are_pure(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The same job leads to the same plan, which names the command and holds the job. It writes and starts
        nothing.
        """
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(subprocess, "Popen", _refuse)
        job = self.job("print('hello')")
        plan = self.make().plan(job)
        assert isinstance(plan, Plan)
        assert plan == self.make().plan(job), "two plans of one job differ"
        assert (plan.job, plan.launcher) == (job, self.make().name)
        assert plan.commands, "the plan does not say what it runs"
        assert "hello" in plan.text(), "the plan does not show the command of the job"
        assert list(tmp_path.iterdir()) == [], "it has written into the working directory"

    def test_options_that_it_does_not_know_are_refused(self) -> None:
        """A wrong option is an error that names it, before anything is submitted."""
        with pytest.raises(ArgumentError, match="no-such-option"):
            self.make().plan(self.job("pass", options={**_options(self.needs), "no-such-option": "1"}))

    def test_a_plan_holds_no_secret(self) -> None:
        """A plan holds nothing that looks like a key."""
        words = self.make().plan(self.job("pass")).text().split()
        assert not [word for word in words if len(word) >= _SECRET_LENGTH and word.strip("'\"").isalnum()]

    def test_a_job_that_nobody_submitted(self) -> None:
        """An unknown job is an error, not a status."""
        self._reached()
        with pytest.raises(EstimatorError):
            self.make().status("4194304")

    def test_every_process_runs_and_is_heard(self) -> None:
        """Each process has its own log with both of its streams, its place, the variables of the job, and the same
        long secret.
        """
        self._reached()
        told = self._told(self.make())
        for place, lines in enumerate(told):
            assert len(lines) == 2, told
            length, _, *rest = lines[0].split()
            assert int(length) >= _SECRET_LENGTH
            assert rest == [str(place), "given"], f"process {place} says its place and its variable: {rest}"
            assert lines[1] == "to standard error"
        assert len({lines[0].split()[1] for lines in told}) == 1, "the processes of one job have different secrets"

    def test_no_two_jobs_share_a_secret(self) -> None:
        """Another job has another secret, and logs of its own."""
        self._reached()
        launcher = self.make()
        first, second = (self._told(launcher) for _ in range(2))
        assert len(second[0]) == 2, "the log of a job has lines of another one"
        assert first[0][0].split()[1] != second[0][0].split()[1], "two jobs have the same secret"

    def test_leaves_nothing_behind(self) -> None:
        """After a job no thread of it runs, and the environment of this process is as before."""
        self._reached()
        threads, environment, folder = set(threading.enumerate()), dict(os.environ), os.getcwd()
        launcher = self.make()
        job_id = launcher.submit(launcher.plan(self.job("pass")))
        assert list(launcher.logs(job_id, 1)) == []
        assert self._ended(launcher, job_id).phase == "succeeded"
        for thread in set(threading.enumerate()) - threads:
            thread.join(timeout=2.0)
            assert not thread.is_alive(), f"thread {thread.name} runs after the job"
        assert dict(os.environ) == environment, "it changes the environment of this process"
        assert os.getcwd() == folder, "it changes the working directory"

    def test_an_error_is_final(self) -> None:
        """A process that fails by itself is not started again."""
        self._reached()
        launcher = self.make()
        job_id = launcher.submit(launcher.plan(self.job("import sys; print('once'); sys.exit(3)", max_restarts=2)))
        status = self._ended(launcher, job_id)
        assert (status.phase, status.restarts, status.exit_status) == ("failed", 0, 1)
        assert "3" in status.why
        logs = [list(launcher.logs(job_id, process)) for process in range(2)]
        assert ["once"] in logs
        # An engine may end the other process before it has written anything.
        assert all(lines in ([], ["once"]) for lines in logs), "a process is started again"

    def test_a_command_that_does_not_start_is_an_error(self) -> None:
        """A job whose program does not exist fails, and says why."""
        self._reached()
        launcher = self.make()
        job = replace(self.job("pass"), command=("no-such-program-of-anybody",))
        status = self._ended(launcher, launcher.submit(launcher.plan(job)))
        assert status.phase == "failed"
        assert status.why

    def test_the_failure_of_one_ends_the_others(self) -> None:
        """When a process fails, the others have the grace to end. Then they are ended by force."""
        self._reached()
        launcher = self.make()
        began = time.monotonic()
        job_id = launcher.submit(launcher.plan(self.job(_ONE_FAILS, grace_secs=1.0, max_restarts=2)))
        status = self._ended(launcher, job_id)
        assert (status.phase, status.restarts) == ("failed", 0), status
        assert time.monotonic() - began < self.patience_secs, "it waits for a process that waits for the failed one"

    def test_an_end_that_can_go_on_is_started_again(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Status 75 starts all processes again, and is counted."""
        self._reached()
        launcher = self.make()
        note = str(tmp_path_factory.mktemp("notes") / "attempts")
        job_id = launcher.submit(launcher.plan(self.job(_ONCE, note, "75", max_restarts=2)))
        status = self._ended(launcher, job_id)
        assert (status.phase, status.restarts) == ("succeeded", 1)
        assert list(launcher.logs(job_id, 1)) == ["attempt 1", "attempt 2"]

    def test_restarts_are_counted_to_their_end(self) -> None:
        """Without restarts left, the job says that it can be resumed."""
        self._reached()
        launcher = self.make()
        job_id = launcher.submit(launcher.plan(self.job("import sys; sys.exit(75)")))
        status = self._ended(launcher, job_id)
        assert (status.phase, status.exit_status, status.restarts) == ("resumable", 75, 0)

    def test_a_stop_is_asked_for_by_sigterm(self) -> None:
        """The processes may save. The job can be resumed, but does not restart by itself."""
        self._reached()
        launcher = self.make()
        job_id = launcher.submit(launcher.plan(self.job(_UNTIL_TERM, max_restarts=2)))
        assert list(itertools.islice(launcher.logs(job_id, 0), 1)) == ["ready"]
        assert list(itertools.islice(launcher.logs(job_id, 1), 1)) == ["ready"]
        began = time.monotonic()
        launcher.stop(job_id, 20.0)
        status = self._ended(launcher, job_id)
        assert (status.phase, status.restarts) == ("resumable", 0)
        assert list(launcher.logs(job_id, 1)) == ["ready", "saved"], "it is not asked, or has no time to save"
        assert time.monotonic() - began < 60, "it took a minute to stop"

    def test_who_does_not_hear_is_ended_by_force(self) -> None:
        """A process that ignores SIGTERM is killed after the grace. The job can be resumed."""
        self._reached()
        launcher = self.make()
        job_id = launcher.submit(launcher.plan(self.job(_DEAF, grace_secs=1.0)))
        for process in range(2):
            assert list(itertools.islice(launcher.logs(job_id, process), 1)) == ["ready"]
        launcher.stop(job_id, 1.0)
        assert self._ended(launcher, job_id).phase == "resumable"

    def _told(self, launcher: Launcher) -> list[list[str]]:
        """Returns what the processes of a job write."""
        job_id = launcher.submit(launcher.plan(self.job(_TELL, env={"ACME_WORD": "given"})))
        logs = [list(launcher.logs(job_id, process)) for process in range(2)]
        assert self._ended(launcher, job_id).phase == "succeeded", logs
        return logs

    def _reached(self) -> None:
        if not self.reachable:
            pytest.skip(f"the engine of {self.make().name} is not here")

    def _ended(self, launcher: Launcher, job_id: str) -> JobStatus:
        deadline = time.monotonic() + self.patience_secs
        while not (status := launcher.status(job_id)).ended:
            assert time.monotonic() < deadline, f"{job_id} has not ended in {self.patience_secs} s: {status}"
            time.sleep(0.1)
        return status


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("a plan starts a process")


def _options(needs: dict[str, object]) -> dict[str, str]:
    given = needs.get("options", {})
    return dict(given) if isinstance(given, dict) else {}
