"""Exports of runs on several devices. Every reader runs them on one device."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import estimator_core as ec
from estimator_core.testing import run_processes
from plugins.exporters.tests.spread_model import X

MODEL = str(Path(__file__).with_name("spread_model.py"))
#: The processes, the devices per process, the mesh and the exports of each run.
RUNS = {
    "eight devices": (1, 8, {"data": 2, "fsdp": 2, "model": 2}, 3),
    "two processes": (2, 1, {"data": -1, "model": 1}, 4),
}


def exported(name, format_name, folder):
    """The paths of the exports of a run, which has its own processes."""
    processes, devices, mesh, count = RUNS[name]
    command = [sys.executable, MODEL, format_name, str(folder), json.dumps(mesh)]
    flags = f"--xla_force_host_platform_device_count={devices}"
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    if processes == 1:
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    else:
        done = run_processes(command, processes, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    paths = sorted(path.parent for path in Path(folder).glob("**/export*/**/manifest.json"))
    assert len(paths) == count, paths
    return paths


def check(paths, folder):
    """Each export returns the predictions of the estimator."""
    expected = json.loads(Path(folder, "expected.json").read_text())
    for path in paths:
        found = ec.export.load(str(path)).signatures["serving_default"](x=X)
        np.testing.assert_allclose(found["y"], expected, rtol=0, atol=1e-5)
