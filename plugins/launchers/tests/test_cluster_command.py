"""`estimator cluster`: who this process believes to be, why, and what it reaches."""

import json
import os
import socket
import subprocess
import sys

import pytest

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
    assert (told["process"], told["processes"], told["chief"], told["reached"]) == (0, 1, True, "nobody to reach")
    assert told["source"] == "nothing names others"
    assert (done.returncode, done.stderr) == (0, "False\n")


def test_process_0_is_reached_or_not():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        done = cluster("--json", "--reach", **TRIPLE, JAX_COORDINATOR_ADDRESS=address)
    told = json.loads(done.stdout)
    assert (done.returncode, told["reached"], told["process"], told["chief"]) == (0, "yes", 1, False)
    assert told["source"] == "JAX_NUM_PROCESSES"
    assert told["variables"]["JAX_PROCESS_ID"] == "1"
    done = cluster("--reach", **TRIPLE, JAX_COORDINATOR_ADDRESS=address)
    assert done.returncode == 1
    assert f"no: {address}" in done.stdout


def test_what_disagrees_is_named():
    done = cluster(**TRIPLE)
    assert done.returncode == 2
    assert "nothing says where process 0 is" in done.stderr


@pytest.mark.parametrize("words", [["cluster", "--help"], ["launch", "--help"]])
def test_help_imports_no_jax(words: list[str]):
    code = (
        "import sys\nfrom estimator_core._cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\nprint('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "False"
