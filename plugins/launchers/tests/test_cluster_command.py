"""Tests of `estimator cluster`: the role of this process, the reason for it, and the addresses that it reaches."""

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from jax._src.clusters.slurm_cluster import SlurmCluster

from estimator_core import Processes
from estimator_launchers.reaching import address_of, reached

TRIPLE = {"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}


def cluster(*words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "SLURM_", "TF_"))}
    code = (
        "import sys\nfrom estimator_core._cli.main import main\ncode = main(['cluster', *sys.argv[1:]])\n"
        "print('jax' in sys.modules, file=sys.stderr)\nsys.exit(code)"
    )
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, env={**kept, **env}, capture_output=True, text=True, timeout=60, check=False)


def test_alone():
    done = cluster("--json", "--reach")
    told = json.loads(done.stdout)
    assert (told["process"], told["processes"], told["chief"], told["reached"]) == (
        0,
        1,
        True,
        "nobody to reach",
    )
    assert told["source"] == "no source names other processes"
    assert (done.returncode, done.stderr) == (0, "False\n")


def test_process_0_is_reached_or_not():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        done = cluster("--json", "--reach", **TRIPLE, JAX_COORDINATOR_ADDRESS=address)
    told = json.loads(done.stdout)
    assert (done.returncode, told["reached"], told["process"], told["chief"]) == (0, "yes", 1, False)
    assert told["source"] == "JAX_NUM_PROCESSES"
    assert told["variables"]["JAX_PROCESS_ID"] == "1"
    done = cluster("--reach", "--reach-secs", "0.1", **TRIPLE, JAX_COORDINATOR_ADDRESS=address)
    assert done.returncode == 1
    assert f"no: {address}" in done.stdout


def of(index: int, count: int, place: str) -> Processes:
    return Processes(place, count, index, "a test")


def test_processes_meet_where_process_0_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        assert reached(of(0, 2, place), {}, 5.0) == (
            "yes: a program already listens there, so other processes were not awaited"
        )
    with ThreadPoolExecutor(3) as pool:
        told = list(pool.map(lambda index: reached(of(index, 3, place), {}, 20.0), (1, 0, 2)))
    assert told == ["yes", f"yes: all 3 processes have reached {place}", "yes"]
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda index: reached(of(index, 4, place), {}, 1.0), (0, 2)))
    assert told == [f"no: of 4 processes 1, 3 did not reach {place} within 1 s", "yes"]
    bound = reached(of(0, 4, place), {"JAX_COORDINATOR_BIND_ADDRESS": "10.0.0.1"}, 1.0)
    assert bound.startswith("no: JAX_COORDINATOR_BIND_ADDRESS='10.0.0.1' should be HOST:PORT")


def test_an_address_that_only_jax_finds_is_not_called_nobody():
    found = reached(Processes("", 4, 2, "OMPI_COMM_WORLD_SIZE", method="mpi4py"), {}, 1.0)
    assert found == "no: jax finds the address of process 0 when it connects (mpi4py)"


@pytest.mark.parametrize("nodes", ["n1", "n1,n2", "n[1-4]", "gpu[07-09,12],cpu1", "a-b[003,5]"])
@pytest.mark.parametrize("port", [{}, {"JAX_COORDINATOR_PORT": "99"}])
def test_slurm_has_the_address_that_jax_finds(nodes: str, port: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    told = {"SLURM_JOB_ID": "4711", "SLURM_STEP_NODELIST": nodes, **port}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    found = SlurmCluster.get_coordinator_address(None, port.get("JAX_COORDINATOR_PORT"))
    assert address_of(Processes("", 2, 1, "SLURM_STEP_NUM_TASKS", method="slurm"), told) == found


def test_what_disagrees_is_named():
    done = cluster(**TRIPLE)
    assert done.returncode == 2
    assert "the address of process 0 is unknown" in done.stderr


@pytest.mark.parametrize("words", [["cluster", "--help"], ["launch", "--help"]])
def test_help_imports_no_jax(words: list[str]):
    code = (
        "import sys\nfrom estimator_core._cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\nprint('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "False"
