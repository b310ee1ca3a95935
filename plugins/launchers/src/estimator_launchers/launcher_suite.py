"""The suite for launchers."""

from __future__ import annotations

import itertools
import sys
import time

import pytest

from estimator_core.errors import ArgumentError, EstimatorError
from estimator_core.testing import Suite
from estimator_launchers.contract import JobSpec, JobStatus, Launcher, Plan
from estimator_launchers.environment import SECRET

_SECRET_LENGTH = 32
_PRINT_SECRET = f"import os; print(len(os.environ[{SECRET!r}]))"
#: Fails once with the given status, and succeeds the second time. It notes its attempts in a file.
_ONCE = """
import os, pathlib, sys
path = pathlib.Path(sys.argv[1] + "-" + os.environ.get("JAX_PROCESS_ID", os.environ.get("SLURM_PROCID", "0")))
path.write_text(path.read_text() + "x" if path.exists() else "x")
print("attempt", len(path.read_text()))
sys.exit(int(sys.argv[2]) if len(path.read_text()) == 1 else 0)
"""
_UNTIL_TERM = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
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
        """The launcher; called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def job(self, code: str, *arguments: str, **fields: object) -> JobSpec:
        """A job of two processes that run Python code."""
        values = {"processes": 2, "grace_secs": 20.0, **self.needs, **fields}
        return JobSpec(command=(sys.executable, "-c", code, *arguments), **values)  # type: ignore[arg-type]

    def test_is_a_launcher(self) -> None:
        """It has the methods of Launcher and a name in lower case."""
        launcher = self.make()
        assert isinstance(launcher, Launcher), f"{launcher!r} lacks a method of Launcher"
        assert launcher.name.islower()

    def test_plans_are_pure(self) -> None:
        """The same job leads to the same plan, which names the command and holds the job."""
        job = self.job("print('hello')")
        plan = self.make().plan(job)
        assert isinstance(plan, Plan)
        assert plan == self.make().plan(job), "two plans of one job differ"
        assert (plan.job, plan.launcher) == (job, self.make().name)
        assert plan.commands, "the plan does not say what it runs"
        assert "hello" in plan.text(), "the plan does not show the command of the job"

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
        """Each process has its own log, and the same long secret."""
        self._reached()
        launcher = self.make()
        job_id = launcher.submit(launcher.plan(self.job(_PRINT_SECRET)))
        logs = [list(launcher.logs(job_id, process)) for process in range(2)]
        assert self._ended(launcher, job_id).phase == "succeeded"
        for lines in logs:
            assert len(lines) == 1, logs
            assert int(lines[0]) >= _SECRET_LENGTH

    def test_an_error_is_final(self) -> None:
        """A process that fails by itself is not started again."""
        self._reached()
        launcher = self.make()
        job_id = launcher.submit(launcher.plan(self.job("import sys; print('once'); sys.exit(3)", max_restarts=2)))
        status = self._ended(launcher, job_id)
        assert (status.phase, status.restarts, status.exit_status) == ("failed", 0, 1)
        assert "3" in status.why
        assert list(launcher.logs(job_id, 0)) == ["once"]

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
        assert (status.phase, status.exit_status) == ("resumable", 75)

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
        assert time.monotonic() - began < 60, "it took a minute to stop"

    def _reached(self) -> None:
        if not self.reachable:
            pytest.skip(f"the engine of {self.make().name} is not here")

    def _ended(self, launcher: Launcher, job_id: str) -> JobStatus:
        deadline = time.monotonic() + self.patience_secs
        while not (status := launcher.status(job_id)).ended:
            assert time.monotonic() < deadline, f"{job_id} has not ended in {self.patience_secs} s: {status}"
            time.sleep(0.1)
        return status


def _options(needs: dict[str, object]) -> dict[str, str]:
    given = needs.get("options", {})
    return dict(given) if isinstance(given, dict) else {}
