"""Tests of one process of several that works alone for a while, and of configs if jax was connected before."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scale_runs import HERE, TOLERANCE, environment, launch

pytestmark = pytest.mark.plugins  # estimator-cluster


@pytest.mark.parametrize("rules", [pytest.param(None, marks=pytest.mark.slow), "full"])
@pytest.mark.slow
def test_an_exporter_of_several_processes_evaluates_and_predicts(tmp_path: Path, rules: str | None) -> None:
    """The exporter runs only in the chief, with programs and states on the chief's own device."""
    out = tmp_path / "out"
    settings = {"model_dir": str(tmp_path / "run"), "out": str(out), "rules": rules}
    done = launch("exporter_worker.py", 2, settings)
    assert done.returncode == 0, done.stdout + done.stderr
    chief, other = (json.loads(Path(f"{out}.{process}.json").read_text()) for process in range(2))
    assert chief["metrics"] == other["metrics"]
    assert other["seen"] == []
    assert [seen["step"] for seen in chief["seen"]] == [5, 10]
    for seen in chief["seen"]:
        for metrics in (seen["metrics"], seen["of_checkpoint"]):
            assert metrics["global_step"] == seen["step"]
            assert metrics["accuracy"] == seen["shared"]["accuracy"]
            assert abs(metrics["per_example"] - seen["shared"]["per_example"]) < TOLERANCE
        assert seen["right"] == pytest.approx(seen["shared"]["accuracy"])
        assert seen["first"]
    # Once for both processes, once for the chief's own device.
    assert (chief["traces"]["train"], other["traces"]["train"]) == (1, 1)
    assert (chief["traces"]["eval"], other["traces"]["eval"]) == (2, 1)


@pytest.mark.slow
def test_a_config_is_never_changed(tmp_path: Path) -> None:
    """Processes known only to jax produce another RunConfig, and the original one stays unchanged."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    processes = [
        subprocess.Popen(
            [sys.executable, str(HERE / "joined_worker.py"), address, "2", str(index), str(tmp_path / "run")],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    for index, process in enumerate(processes):
        printed, errors = process.communicate(timeout=280)
        assert process.returncode == 0, errors
        told: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
        assert told["before"] == told["given"] == [None, True]
        assert told["now"] == told["hook"] == told["model_fn"] == [[2, index], index == 0]
        assert told["newest"] == "2"
