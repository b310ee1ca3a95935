"""Tests of sweep workers as tasks of a real Slurm: the trials equal those of undisturbed workers, also after a kill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_launchers import JobSpec, SlurmLauncher
from plugins.launchers.tests import sweep_job
from plugins.launchers.tests.processes import until
from plugins.launchers.tests.test_slurm_site import pytestmark as of_the_site
from plugins.launchers.tests.test_slurm_site import requeued_soon, site

pytest.importorskip("optuna", reason="estimator-runs[sweep] is not installed")
pytestmark = [of_the_site, pytest.mark.slow]
_ = requeued_soon, site  # fixtures


@pytest.fixture
def launcher(site: Path, tmp_path: Path) -> Iterator[SlurmLauncher]:
    made, jobs = SlurmLauncher(str(tmp_path / "jobs")), tmp_path / "jobs"
    yield made
    for job in jobs.iterdir() if jobs.is_dir() else ():
        if job.is_dir() and not made.status(job.name).ended:
            made.stop(job.name, 1)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("requeued_soon")
def test_a_killed_worker_changes_no_trial(launcher: SlurmLauncher, tmp_path: Path) -> None:
    """Two nodes have a worker each. Slurm requeues the job, and trials continue from their checkpoints."""
    file, folder = sweep_job.write(tmp_path), tmp_path / "shared"
    command = tuple(sweep_job.words(file, folder))
    job = JobSpec(command=command, processes=2, hosts=2, max_restarts=3, grace_secs=10.0)
    job_id = launcher.submit(launcher.plan(job))
    before = sweep_job.kill_one(folder, 2, lambda: not launcher.status(job_id).ended)
    until(lambda: launcher.status(job_id).ended, 400)
    status, logs = launcher.status(job_id), ["\n".join(launcher.logs(job_id, process)) for process in range(2)]
    assert (status.phase, status.restarts) == ("succeeded", 1), logs
    assert len(before) == 2
    assert all(f"All trials of {folder} have ended." in log for log in logs), logs
    assert sweep_job.trials(file, folder) == sweep_job.expected(file, tmp_path / "here")
    assert "8 complete" in sweep_job.show(file, folder)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("requeued_soon")
def test_a_job_that_was_stopped_goes_on_in_another_one(launcher: SlurmLauncher, tmp_path: Path) -> None:
    """`--stop` ends the workers. A second submission produces the same trials."""
    file, folder = sweep_job.write(tmp_path), tmp_path / "shared"
    plan = launcher.plan(JobSpec(command=tuple(sweep_job.words(file, folder)), processes=2, hosts=2, grace_secs=30.0))
    first = launcher.submit(plan)
    until(lambda: list(folder.glob("trials/*/outcome.json")), 300)
    launcher.stop(first, 30.0)
    assert launcher.status(first).phase == "resumable"
    assert len(sweep_job.trials(file, folder)) < 8
    second = launcher.submit(plan)
    until(lambda: launcher.status(second).ended, 400)
    assert launcher.status(second).phase == "succeeded"
    assert sweep_job.trials(file, folder) == sweep_job.expected(file, tmp_path / "here")
