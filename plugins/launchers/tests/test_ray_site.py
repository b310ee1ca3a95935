"""Tests on a real Ray of two nodes: jobs end, are stopped, lose a worker, a process or a node, and continue."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from estimator_launchers import JobSpec, RayLauncher, launch
from estimator_launchers.launcher_suite import LauncherSuite
from plugins.launchers.tests import faults, ray_site
from plugins.launchers.tests.processes import until
from plugins.launchers.tests.test_pages import PAGES, command, program

pytestmark = [
    pytest.mark.skipif(os.environ.get("ESTIMATOR_TEST_RAY") != "1", reason="session `ray` runs it"),
    pytest.mark.filterwarnings("default"),  # Ray uses functions that its libraries call deprecated
    pytest.mark.timeout(900),  # a restart takes Ray over a minute, and several minutes on a busy machine
]

Cluster = Any  # the ordinary tests do not have ray


@pytest.fixture(scope="module", autouse=True)
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patched, ray_site.cluster() as made:
        patched.setenv("RAY_ADDRESS", made.address)
        patched.setenv("JAX_PLATFORMS", "cpu")
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield made


@pytest.mark.slow
class TestRayLauncher(LauncherSuite):
    needs = {"hosts": 2}  # noqa: RUF012 - read only

    def make(self):
        return RayLauncher()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns the last line of each process of an undisturbed run."""
    status, heard = faults.followed(RayLauncher(), tmp_path_factory.mktemp("calm") / "out", hosts=2)
    assert status.phase == "succeeded", heard.text
    return heard.done()


def test_two_nodes_train_together(undisturbed: list[str]) -> None:
    assert [line.split()[1:4] for line in undisturbed] == [["done", "2", "0"], ["done", "2", "1"]]
    assert len({line.split()[4] for line in undisturbed}) == 1


FAULTS = ["kill@12", "freeze@12", "raise@12", "kill@evaluate", "kill@predict"]


@pytest.mark.parametrize("fault", ["actor@12", *[pytest.param(one, marks=pytest.mark.slow) for one in FAULTS]])
def test_what_is_lost_is_named_in_time_and_the_run_goes_on_at_the_same_example(
    tmp_path: Path, undisturbed: list[str], fault: str
) -> None:
    """Every number is that of the undisturbed run, bit for bit."""
    names = [r"process 1 on \S+ is lost: "] if fault.startswith("actor") else ()
    faults.survives(RayLauncher(), tmp_path / "out", undisturbed, fault, names, hosts=2, grace_secs=40.0)


@pytest.mark.slow
def test_what_is_killed_in_the_restart_too(tmp_path: Path, undisturbed: list[str]) -> None:
    faults.survives_two(RayLauncher(), tmp_path / "out", undisturbed, hosts=2, grace_secs=40.0)


@pytest.mark.slow
@pytest.mark.parametrize(("spare", "left"), [(False, 1), (True, 2)], ids=["without it", "with a spare node"])
def test_a_run_goes_on_after_a_node_is_lost(
    tmp_path: Path, site: Cluster, capfd: pytest.CaptureFixture[str], spare: bool, left: int
) -> None:
    """The node of a process is lost during training. The remaining nodes continue, or a free node replaces it."""
    (tmp_path / "out").mkdir()
    command = (sys.executable, "-c", faults.PROGRAM, str(tmp_path / "out"), "1", "slow")
    room_for_one = {"cpus": "2"}  # on each node
    env = {"STEPS": "150"}
    job = JobSpec(
        command=command, processes=2, hosts=2, min_processes=left, max_restarts=2, options=room_for_one, env=env
    )
    lines: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(launch, job, "ray", write=lines.append)
        step = tmp_path / "out" / "step"
        until(lambda: step.exists() and int(step.read_text() or 0) > 20, 120)
        (used,) = site.worker_nodes
        if spare:
            ray_site.add_node(site)
        began = time.monotonic()
        site.remove_node(used)
        try:
            status = waiting.result()
        finally:
            if not spare:
                ray_site.add_node(site)
    said = capfd.readouterr().err
    with capfd.disabled():
        print(*re.findall("estimator launch: .*", said), f"{time.monotonic() - began:.1f} s", sep="\n")
    assert status.phase == "succeeded", lines
    ended = [["done", str(left), str(index)] for index in range(left)]
    assert sorted(line.split()[1:4] for line in lines if "] done " in line) == ended, lines


@pytest.mark.slow
def test_an_evaluator_beside_the_trainers(tmp_path: Path) -> None:
    code = (
        "import estimator_core as ec; c = ec.RunConfig(); g = c.process_group\n"
        "print(c.task_type, c.task_id, g and (g.count, g.index))"
    )
    job = JobSpec(command=(sys.executable, "-c", code), processes=2, hosts=2, evaluator=True)
    lines: list[str] = []
    assert launch(job, on="ray", write=lines.append).phase == "succeeded", lines
    assert sorted(lines) == ["[0] chief 0 (2, 0)", "[1] worker 0 (2, 1)", "[2] evaluator 0 None"]


@pytest.mark.slow
@pytest.mark.skipif(not PAGES.is_dir(), reason="the pages are not beside these tests")
def test_from_an_empty_folder_by_the_page(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(program("local.md"))
    for words in ("--dry-run", "--max-restarts"):
        ran = command("ray.md", f"estimator launch --on ray --processes 2 --hosts 2 {words}")
        ended = subprocess.run(ran, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert (tmp_path / "run").exists() == ("--dry-run" not in ran)
    assert len([line for line in ended.stdout.splitlines() if "metrics {" in line]) == 2, ended.stdout
