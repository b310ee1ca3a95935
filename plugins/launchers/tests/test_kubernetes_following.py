"""Tests of followed pods: streams break off, and the cluster does not answer for a while."""

import os
import sys
import threading
import time

import pytest

from estimator_launchers import JobSpec, KubernetesLauncher, kubernetes
from estimator_launchers.kubectl import WatchedPods
from estimator_launchers.launching import submit_and_follow
from plugins.launchers.tests import fake_cluster

pytest.importorskip("yaml", reason="PyYAML writes the manifests: the extra `kubernetes`")

TALKS = (
    "import os, pathlib, signal, sys, time\n"
    "for number in (1, 2, 3): print('line', number, flush=True)\n"
    "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)\n"
    "print('line 4\\rline 5', flush=True)\n"
    "os.kill(os.getpid(), signal.SIGKILL)\n"
)


@pytest.mark.parametrize("cut", ["cut", "away"])
def test_each_line_is_shown_once_after_streams_have_broken_off(cut, tmp_path, monkeypatch, capsys):
    go, lines = tmp_path / "go", []

    def write(line):
        lines.append(line)
        if line == "[0] line 3":
            (folder / cut).touch()
            threading.Timer(2.5, restore).start()

    def restore():
        (folder / cut).unlink()
        go.touch()

    with fake_cluster.cluster(tmp_path / "cluster", tmp_path) as folder:
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        launcher = KubernetesLauncher()
        job = JobSpec(command=(sys.executable, "-c", TALKS, str(go)), processes=1, image="registry.example/train:1")
        status = submit_and_follow(launcher, launcher.plan(job), write=write)
    assert status.phase == "resumable", status
    assert lines == [f"[0] line {number}" for number in (1, 2, 3, 4, 5)]
    assert "has ended: ended by SIGKILL" in capsys.readouterr().err


def test_the_end_is_told_though_the_watch_of_the_pods_begins_again_just_then(tmp_path, monkeypatch, capsys):
    class BeginsAgain(WatchedPods):
        """Pods whose stream has broken off, and whose next stream has not shown anything yet."""

        def changes(self, secs):
            time.sleep(secs)
            return iter(())

    monkeypatch.setattr(kubernetes, "WatchedPods", BeginsAgain)
    with fake_cluster.cluster(tmp_path / "cluster", tmp_path) as folder:
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        launcher = KubernetesLauncher()
        code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        job = JobSpec(command=(sys.executable, "-c", code), processes=1, image="registry.example/train:1")
        status = submit_and_follow(launcher, launcher.plan(job), write=print)
    assert status.phase == "resumable", status
    assert capsys.readouterr().err.count("has ended: ended by SIGKILL") == 1
