"""Tests of jobs of Kubernetes from kubectl to their end, on the fake cluster: its pods run on this machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from estimator_launchers import JobSpec, KubernetesLauncher
from estimator_launchers.launcher_suite import LauncherSuite
from estimator_launchers.launching import submit_and_follow
from estimator_launchers.pods import Told, ends
from plugins.launchers.tests import fake_cluster, faults
from plugins.launchers.tests.test_pages import PAGES, command, program

pytest.importorskip("yaml", reason="PyYAML writes the manifests: the extra `kubernetes`")

SAYS = (
    "import os; import estimator_core as ec; c = ec.RunConfig(); g = c.process_group\n"
    "print(c.task_type, c.task_id, g and (g.count, g.index), len(os.environ['ESTIMATOR_RUN_SECRET']))"
)
FIRST = "estimator launch --on kubernetes --processes 2 --max-restarts 3"
IMAGE = {"image": "registry.example/train:1"}


@pytest.fixture
def kubectl(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with fake_cluster.cluster(tmp_path_factory.mktemp("fake") / "cluster") as folder:
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("kubectl")
class TestKubernetesLauncher(LauncherSuite):
    needs = IMAGE

    def make(self):
        return KubernetesLauncher()

    def test_an_end_that_can_go_on_is_started_again(self, tmp_path_factory):
        """The cluster ends the other pods at once and removes their logs, which the launcher has already read."""
        code = (
            "import os, pathlib, sys, time\n"
            "me, folder = os.environ['JAX_PROCESS_ID'], pathlib.Path(sys.argv[1])\n"
            "attempt = len(list(folder.glob(f'{me}-*'))) + 1\n"
            "print('attempt', attempt, flush=True)\n"
            "(folder / f'{me}-{attempt}').touch()\n"
            "while len(list(folder.glob(f'*-{attempt}'))) < 2: time.sleep(0.05)\n"
            "if attempt == 1: time.sleep(3); sys.exit(75)\n"
        )
        launcher, lines = self.make(), []
        job = self.job(code, str(tmp_path_factory.mktemp("notes")), max_restarts=2)
        status = submit_and_follow(launcher, launcher.plan(job), write=lines.append)
        assert (status.phase, status.restarts) == ("succeeded", 1)
        assert [line for line in lines if line.startswith("[1] ")] == ["[1] attempt 1", "[1] attempt 2"]

    def test_a_stop_is_asked_for_by_sigterm(self, tmp_path_factory):
        """The cluster removes suspended pods and their logs after the pods have saved. Another submission continues."""
        folder = tmp_path_factory.mktemp("notes")
        code = (
            "import os, pathlib, signal, sys, time\n"
            "saved = pathlib.Path(sys.argv[1], os.environ['JAX_PROCESS_ID'])\n"
            "if saved.exists(): sys.exit(0)\n"
            "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), saved.touch(), os._exit(75)))\n"
            "print('ready', flush=True)\n"
            "time.sleep(600)\n"
        )
        launcher = self.make()
        plan = launcher.plan(self.job(code, str(folder), max_restarts=2))
        job_id = launcher.submit(plan)
        for process in range(2):
            assert next(launcher.logs(job_id, process)) == "ready"
        launcher.stop(job_id, 20.0)
        status = launcher.status(job_id)
        assert (status.phase, status.restarts) == ("resumable", 0)
        assert sorted(path.name for path in folder.iterdir()) == ["0", "1"]
        assert self._ended(launcher, launcher.submit(plan)).phase == "succeeded"


@pytest.mark.usefixtures("kubectl")
def test_the_pods_find_each_other_by_the_manifest() -> None:
    launcher, lines = KubernetesLauncher(), []
    job = JobSpec(command=(sys.executable, "-c", SAYS), processes=3, evaluator=True, devices=2, **IMAGE)
    status = submit_and_follow(launcher, launcher.plan(job), write=lines.append)
    assert status.phase == "succeeded", (status, lines)
    assert sorted(lines) == [
        "[0] chief 0 (3, 0) 64",
        "[1] worker 0 (3, 1) 64",
        "[2] worker 1 (3, 2) 64",
        "[3] evaluator 0 None 64",
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns the last line of each process of an undisturbed run."""
    folder = tmp_path_factory.mktemp("calm")
    with pytest.MonkeyPatch.context() as patched, fake_cluster.cluster(folder / "cluster") as made:
        patched.setenv("PATH", f"{made}{os.pathsep}{os.environ['PATH']}")
        status, heard = faults.followed(KubernetesLauncher(), folder / "out", **IMAGE)
    assert status.phase == "succeeded", heard.text
    return heard.done()


@pytest.mark.slow
@pytest.mark.plugins  # estimator-cluster
@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize("fault", ["kill@12", "freeze@12", "raise@12"])
def test_a_pod_that_is_lost_is_named_in_time_and_nothing_is_lost(
    tmp_path: Path, undisturbed: list[str], fault: str
) -> None:
    names = [faults.FAILED] if fault.startswith("raise") else ()  # the other pod receives SIGTERM first
    faults.survives(KubernetesLauncher(), tmp_path / "out", undisturbed, fault, names, **IMAGE)


@pytest.mark.slow
@pytest.mark.plugins  # estimator-cluster
@pytest.mark.skipif(not PAGES.is_dir(), reason="the pages are not beside these tests")
def test_from_an_empty_folder_by_the_page(tmp_path: Path) -> None:
    """Applies the `--dry-run` output of the page to the fake cluster.

    The volume `run/` is in the shared folder of the pods.
    """
    app = tmp_path / "app"
    app.mkdir()
    (app / "train.py").write_text(program("local.md"))
    words = [word for word in command("kubernetes.md", FIRST) if word != "--dry-run"]
    with fake_cluster.cluster(tmp_path / "cluster", app) as folder:
        env = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "JAX_PLATFORMS": "cpu"}
        done = subprocess.run(words, cwd=app, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([line for line in done.stdout.splitlines() if "metrics {" in line]) == 2, done.stdout
    assert (app / "run" / "checkpoints").is_dir()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def pod(
    name: str, index: int, status: int | None = None, *, node: str = "n1", attempt: int = 0, **more: Any
) -> dict[str, Any]:
    state: dict[str, Any] = {"running": {}} if status is None else {"terminated": {"exitCode": status, **more}}
    return {
        "metadata": {
            "name": name,
            "labels": {
                "batch.kubernetes.io/job-completion-index": str(index),
                "jobset.sigs.k8s.io/restart-attempt": str(attempt),
            },
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running" if status is None else "Failed", "containerStatuses": [{"state": state}]},
    }


def test_who_was_killed_is_named_once_with_its_node_and_not_those_that_follow() -> None:
    clock = Clock()
    told = Told(clock)
    assert list(told.new([pod("a", 0), pod("b", 1, 137, node="n2", reason="Error")])) == [
        "process 1 on n2 has ended: ended by SIGKILL"
    ]
    clock.now = 3.0
    assert list(told.new([pod("a", 0, 75), pod("b", 1, 137, node="n2")])) == []
    clock.now = 9.5
    again = [pod("c", 0, attempt=1), pod("d", 1, attempt=1)]
    assert list(told.new(again)) == ["starting again (attempt 2), 9.5 s after the loss"]
    assert list(told.new([pod("c", 0, 75, attempt=1), again[1]])) == [
        "process 0 on n1 has ended: stopped early, can continue"
    ]


def test_what_the_cluster_says_of_the_reason_is_passed_on() -> None:
    evicted = pod("a", 0, 143)
    evicted["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "message": "node is drained"}]
    lines = Told().new([evicted, pod("b", 1, 137, reason="OOMKilled")])
    assert list(lines) == [
        "process 0 on n1 has ended: ended by SIGTERM (node is drained)",
        "process 1 on n1 has ended: ended by SIGKILL (OOMKilled)",
    ]


def test_how_the_pods_of_a_failed_job_ended() -> None:
    assert ends([pod("a", 0, 75), pod("b", 1, 3, node="n2"), pod("c", 2)]) == (
        "process 0 on n1: stopped early, can continue; process 1 on n2: failed with status 3"
    )
