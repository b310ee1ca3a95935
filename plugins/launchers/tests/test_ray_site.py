"""A real Ray of two nodes: jobs end, are stopped, lose a worker, a process or a node, and continue."""

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
from plugins.launchers.tests import ray_site
from plugins.launchers.tests.processes import until
from plugins.launchers.tests.test_pages import PAGES, command, program

pytestmark = [
    pytest.mark.skipif(os.environ.get("ESTIMATOR_TEST_RAY") != "1", reason="session `ray` runs it"),
    pytest.mark.filterwarnings("default"),  # Ray uses what its libraries call deprecated
    pytest.mark.timeout(900),  # a restart takes Ray over a minute, and on a busy machine several
]

Cluster = Any  # of ray, which the ordinary tests do not have

TRAIN = """
import os, pathlib, signal, sys, time
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec

FAULT, OUT, STEPS = sys.argv[2], pathlib.Path(sys.argv[1]), int(sys.argv[3])
WHO = os.environ.get("JAX_PROCESS_ID", "0")
first = os.environ.get("ESTIMATOR_ATTEMPT", "0") == "0"

def model_fn(features, labels, mode):
    loss = jnp.mean((features["x"] @ ec.get_variable("w", (2,)) - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(1e-2))

def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

class Fault(ec.Hook):
    def next_step(self, step):
        return step + 1
    def after_step(self, run, step, out):
        if FAULT == "slow":
            (OUT / "step").write_text(str(step)); time.sleep(0.1)
        if first and step == 12 and WHO == "1":
            if FAULT == "actor":
                os.kill(parent(os.getppid()), signal.SIGKILL)
                time.sleep(60)
            elif FAULT in ("kill", "freeze"):
                os.kill(os.getpid(), signal.SIGKILL if FAULT == "kill" else signal.SIGSTOP)
            elif FAULT == "raise":
                raise RuntimeError("the input of this process broke")

x = np.arange(128, dtype=np.float32).reshape(64, 2) / 128
data = ec.inputs.numpy_input_fn({"x": x}, x.sum(1), batch_size=4, num_epochs=None, shuffle=True, seed=1)
config = ec.RunConfig(model_dir=str(OUT / "run"), save_checkpoints_steps=10, tf_random_seed=1, default_hooks=False)
estimator = ec.Estimator(model_fn, config=config)
estimator.train(data, max_steps=STEPS, hooks=[Fault()])
group = estimator.config.process_group
print("done", group.count if group else 1, WHO, [value.hex() for value in estimator.get_variable_value("w").tolist()])
"""


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


def train(out: Path, *words: str, **fields: object) -> tuple[object, list[str]]:
    """How a job of two nodes ends, and what its processes write."""
    out.mkdir()
    values = {"processes": 2, "hosts": 2, "grace_secs": 40.0, **fields}
    job = JobSpec(command=(sys.executable, "-c", TRAIN, str(out), *words), **values)  # type: ignore[arg-type]
    lines: list[str] = []
    began = time.monotonic()
    status = launch(job, on="ray", write=lines.append)
    print(f"{words}: {status}, {time.monotonic() - began:.1f} s")
    return status, lines


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The last line of each process of a run to which nothing happens."""
    status, lines = train(tmp_path_factory.mktemp("calm") / "out", "none", "20")
    assert status.phase == "succeeded", lines
    return done(lines)


def done(lines: list[str]) -> list[str]:
    return sorted(line for line in lines if "] done " in line)


def test_two_nodes_train_together(undisturbed: list[str]) -> None:
    assert [line.split()[1:4] for line in undisturbed] == [["done", "2", "0"], ["done", "2", "1"]]
    assert len({line.partition("[0x")[2] or line.split(maxsplit=4)[4] for line in undisturbed}) == 1


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("actor", r"process 1 is lost: "),
        pytest.param("kill", r"process 1 has ended: ended by SIGKILL", marks=pytest.mark.slow),
        pytest.param("freeze", r"process 0 has ended: stopped early, can continue", marks=pytest.mark.slow),
    ],
)
def test_what_is_lost_is_named_and_the_run_goes_on_at_the_same_example(
    tmp_path: Path, undisturbed: list[str], capfd: pytest.CaptureFixture[str], fault: str, says: str
) -> None:
    """The weights are those of the undisturbed run, bit for bit."""
    status, lines = train(tmp_path / "out", fault, "20", max_restarts=1)
    said = capfd.readouterr().err
    with capfd.disabled():
        print(*re.findall("estimator launch: .*", said), sep="\n")
    assert (status.phase, status.restarts) == ("succeeded", 1), lines
    assert re.search(says, said)
    assert re.search(r"starting again, 2 together \(attempt 2\), [\d.]+ s after the loss", said)
    if fault == "freeze":
        assert any("[0] estimator: Process 1 of 2" in line for line in lines), lines
    assert done(lines) == undisturbed


@pytest.mark.slow
def test_an_error_of_a_program_is_final(tmp_path: Path) -> None:
    status, lines = train(tmp_path / "out", "raise", "20", max_restarts=2)
    assert (status.phase, status.restarts, status.exit_status) == ("failed", 0, 1), lines
    assert any("the input of this process broke" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(("spare", "left"), [(False, 1), (True, 2)], ids=["without it", "with a spare node"])
def test_a_run_goes_on_after_a_node_is_lost(
    tmp_path: Path, site: Cluster, capfd: pytest.CaptureFixture[str], spare: bool, left: int
) -> None:
    """The node of a process goes away while it trains: those that are left continue, or a free node takes its place."""
    (tmp_path / "out").mkdir()
    command = (sys.executable, "-c", TRAIN, str(tmp_path / "out"), "slow", "150")
    room_for_one = {"cpus": "2"}  # on each node
    job = JobSpec(command=command, processes=2, hosts=2, min_processes=left, max_restarts=2, options=room_for_one)
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
    assert [line.split()[1:4] for line in done(lines)] == ended, lines


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
