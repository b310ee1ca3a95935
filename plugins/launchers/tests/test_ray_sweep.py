"""Tests of sweep workers as processes of a real Ray: the trials equal those of undisturbed workers."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from estimator_launchers import JobSpec, launch
from plugins.launchers.tests import sweep_job
from plugins.launchers.tests.test_ray_site import pytestmark as of_the_site
from plugins.launchers.tests.test_ray_site import site

pytest.importorskip("optuna", reason="estimator-runs[sweep] is not installed")
pytestmark = [*of_the_site, pytest.mark.slow]
_ = site  # a fixture


def test_a_killed_worker_changes_no_trial(tmp_path: Path) -> None:
    """Two nodes have a worker each. Ray Train starts both again, and trials continue from their checkpoints."""
    file, folder = sweep_job.write(tmp_path), tmp_path / "shared"
    job = JobSpec(command=tuple(sweep_job.words(file, folder)), processes=2, hosts=2, max_restarts=3, grace_secs=10.0)
    lines: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(launch, job, "ray", write=lines.append)
        before = sweep_job.kill_one(folder, 2, lambda: not waiting.done())
        status = waiting.result()
    assert (status.phase, status.restarts) == ("succeeded", 1), lines
    assert len(before) == 2
    assert len([line for line in lines if f"All trials of {folder} have ended." in line]) == 2, lines
    assert sweep_job.trials(file, folder) == sweep_job.expected(file, tmp_path / "here")
    assert "8 complete" in sweep_job.show(file, folder)
