"""Tests of sweep workers as the pods of a manifest, on the fake cluster, whose pods are processes of this machine."""

import os
from pathlib import Path

import pytest

from estimator_launchers import JobSpec, KubernetesLauncher
from plugins.launchers.tests import fake_cluster, sweep_job
from plugins.launchers.tests.processes import until

pytest.importorskip("yaml", reason="PyYAML writes the manifests: the extra `kubernetes`")
pytest.importorskip("optuna", reason="estimator-runs[sweep] is not installed")
pytestmark = [pytest.mark.plugins, pytest.mark.slow]


def test_a_killed_worker_changes_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod is killed. Its controller starts all pods again, and trials continue from their checkpoints."""
    file, folder = sweep_job.write(tmp_path), tmp_path / "shared"
    command = tuple(sweep_job.words(file, folder))
    image = "registry.example/sweep:1"
    launcher, job = KubernetesLauncher(), JobSpec(command=command, processes=2, image=image, max_restarts=3)
    with fake_cluster.cluster(tmp_path / "cluster") as kubectl:
        monkeypatch.setenv("PATH", f"{kubectl}{os.pathsep}{os.environ['PATH']}")
        job_id = launcher.submit(launcher.plan(job))
        before = sweep_job.kill_one(folder, 2, lambda: not launcher.status(job_id).ended)
        until(lambda: launcher.status(job_id).ended, 400)
        status = launcher.status(job_id)
    assert (status.phase, status.restarts, len(before)) == ("succeeded", 1, 2)
    assert sweep_job.trials(file, folder) == sweep_job.expected(file, tmp_path / "here")
