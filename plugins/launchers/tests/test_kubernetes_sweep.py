"""Workers of a sweep as the pods of a manifest, which are processes of this machine: there is no cluster."""

from pathlib import Path
from typing import Any

import pytest

from estimator_launchers import JobSpec, KubernetesLauncher
from plugins.launchers.tests import fake_cluster, sweep_job

yaml = pytest.importorskip("yaml", reason="PyYAML writes the manifests: the extra `kubernetes`")
pytest.importorskip("optuna", reason="estimator-runs[sweep] is not installed")
pytestmark = [pytest.mark.plugins, pytest.mark.slow]


def test_a_killed_worker_changes_no_trial(tmp_path: Path) -> None:
    """A pod is killed. Its controller starts all pods again, and trials continue from their checkpoints."""
    file, folder = sweep_job.write(tmp_path), tmp_path / "shared"
    command = tuple(sweep_job.words(file, folder))
    volume = {"volume": f"disk:{tmp_path}"}
    job = JobSpec(command=command, processes=2, image="registry.example/sweep:1", max_restarts=3, options=volume)
    plan = KubernetesLauncher().plan(job)
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(plan.files[0].text))
    secrets = {f"{job.name}-run": {"secret": "s" * 64}}
    pods = fake_cluster.started(objects, secrets)
    before = sweep_job.kill_one(folder, 2)
    assert before == sorted(pod.pid for pod in pods)
    for pod in pods:  # as the controller of the JobSet ends the others, before it starts all again
        pod.terminate()
    said = [pod.communicate(timeout=60)[0] for pod in pods]
    assert sorted(pod.returncode for pod in pods) == [-9, 75], said
    ended = fake_cluster.run(objects, secrets, timeout=400)
    assert [status for status, _ in ended] == [0, 0], ended
    assert sweep_job.trials(file, folder) == sweep_job.expected(file, tmp_path / "here")
