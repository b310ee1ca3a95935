"""Tests of the driver: a job that Ray refuses is not retried, and a held pipe does not block its worker."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estimator_launchers.ray_address import reach
from plugins.launchers.tests import fake_ray
from plugins.launchers.tests.processes import launch

# Reads the output of a worker's command, as Ray Train would.
WORKER = """
import sys
from estimator_launchers import JobSpec, ray_worker
ray_worker._READ_SECS = 0.5
def ask(method, *arguments):
    if method == "write": print("written", arguments[1], flush=True)
    return "go on"
job = JobSpec(command=tuple(sys.argv[1:]))
print("ended", ray_worker._run(job, {"run_id": "run", "folder": "."}, ask, 0, 0, {}), flush=True)
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Returns the environment in which the fake Ray is imported."""
    path = [fake_ray.write(tmp_path / "fake"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        ("init", "did not start: Ray cannot connect this driver: ConnectionError: init fails"),
        ("trainer", "the job cannot be submitted to Ray: ValueError: no such storage"),
    ],
)
def test_what_ray_refuses_has_failed(fails: str, says: str, env: dict[str, str]):
    words = ("--on", "ray", "--processes", "1", "--max-restarts", "1", "--option", "address=auto", "--", "true")
    done = launch(*words, env={**env, "FAKE_RAY": fails})
    assert done.returncode == 1, done.stdout + done.stderr
    assert says in done.stderr


def test_what_ray_loses_later_can_go_on_and_says_why(env: dict[str, str]):
    done = launch("--on", "ray", "--processes", "1", "--", "true", env={**env, "FAKE_RAY": "board"})
    assert done.returncode == 75, done.stdout + done.stderr
    assert "resumable: Ray has lost the job: ConnectionError: the board is gone" in done.stderr


@pytest.mark.slow
def test_a_cluster_out_of_reach_is_named_in_time(env: dict[str, str]):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    began = time.monotonic()
    told = {"FAKE_RAY": "init", "RAY_ADDRESS": address}
    done = launch("--on", "ray", "--processes", "1", "--", "true", env={**env, **told})
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"Ray cannot connect this driver: ConnectionError: no cluster listens at {address}: " in done.stderr
    assert time.monotonic() - began < 60.0


def test_where_somebody_listens_or_ray_finds_the_cluster_nobody_waits():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        reach(address, 1.0)
    for found in ("auto", "local", "", f"ray://{address}"):
        reach(found, 0.0)
    with pytest.raises(ConnectionError, match="no cluster listens at"):
        reach(address, 0.0)


def test_who_leaves_the_session_of_a_command_does_not_hold_its_worker(env: dict[str, str]):
    """The process that leaves the session holds the pipe that the worker reads."""
    began = time.monotonic()
    command = [sys.executable, "-c", WORKER, "sh", "-c", "echo hello; setsid sleep 25 & exit 3"]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["written ['hello']", "ended 3"]
    assert time.monotonic() - began < 20.0


EVALUATOR = """
from estimator_launchers import JobSpec, ray_worker
statuses = [137, 75, 1]
def ask(method, *arguments):
    print(method, *arguments, flush=True)
    return method == "evaluator_again" and len(statuses) > 1
ray_worker.asking = lambda board: ask
ray_worker._run = lambda *words: statuses.pop(0)
print("returned", ray_worker.evaluate_process({"job": JobSpec(command=("x",), processes=2).to_json(), "board": None}))
"""


def test_the_evaluator_starts_again_until_the_board_says_no(env: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", EVALUATOR], env=env, capture_output=True, text=True, check=False)
    said = ["ended 0 2 137", "evaluator_again", "ended 0 2 75", "evaluator_again"]
    assert done.stdout.splitlines() == [*said, "returned 75"], done.stderr
