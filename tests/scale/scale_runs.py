"""Runs of the workers in separate processes, because devices and processes cannot change after jax has started."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.testing import run_processes

HERE = Path(__file__).parent
#: The largest difference between two orders of summation. A sum of 32 float32 terms in another order differs by at most
#: 31 * 2**-24 = 1.8e-6 of its terms; Adam turns that into at most about twice the part of a step of 1e-2, and twelve
#: steps add up to 5e-7. Four times that leaves room for products inside the layers.
TOLERANCE = 2e-6


def environment(devices: int = 1, **more: str) -> dict[str, str]:
    """Returns the environment of this process without the variables that announce other processes."""
    kept = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "XLA_FLAGS")}
    kept["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        **kept,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        **more,
    }


def launch(
    worker: str,
    count: int,
    settings: Any,
    *,
    devices: int = 1,
    arguments: Sequence[str] | None = None,
    timeout: float = 280.0,
    variables: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Runs a worker as several processes, with its settings as JSON or with arguments, and with further variables."""
    given = [json.dumps(settings)] if arguments is None else arguments
    command = [sys.executable, str(HERE / worker), *given]
    return run_processes(command, count, env={**environment(devices), **(variables or {})}, timeout=timeout)


def run_worker(worker: str, *arguments: str, devices: int = 1) -> Any:
    """Runs a worker and returns its last line."""
    done = subprocess.run(
        [sys.executable, str(HERE / worker), *arguments],
        env=environment(devices),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def seen(out: Path, process: int = 0) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Returns the results that `train_worker.run` wrote in a process."""
    with np.load(f"{out}.{process}.npz") as values:
        return json.loads(Path(f"{out}.{process}.json").read_text()), dict(values)


def assert_same(losses: Sequence[float], expected: Sequence[float]) -> None:
    """Checks that loss curves differ only by the order of sums."""
    assert len(losses) == len(expected)
    np.testing.assert_allclose(losses, expected, rtol=0, atol=TOLERANCE)
