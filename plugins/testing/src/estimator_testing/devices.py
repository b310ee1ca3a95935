"""Runs code on several devices, in a fresh process whose CPU appears as many devices."""

from __future__ import annotations

import os
import subprocess
import sys

from estimator_core.errors import EstimatorError


def run_with_devices(count: int, code: str, *arguments: str, timeout: float = 300) -> str:
    """Runs Python code in a fresh process with `count` CPU devices. Returns its printed output.

    Args:
        count: the number of devices that `jax.devices()` returns.
        code: the code.
        arguments: `sys.argv[1:]` of the code.
        timeout: the time limit in seconds.

    Raises:
        EstimatorError: the process failed. The message has its output.

    Example:
        >>> run_with_devices(3, "import jax; print(len(jax.devices()))")
        '3'
    """
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    if done.returncode != 0:
        raise EstimatorError(f"the process ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout.strip()
