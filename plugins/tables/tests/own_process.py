"""Programs of the tests in processes of their own, with a number of devices, which may be killed at a step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import estimator_core as ec


class Killed(ec.Hook):
    """Ends the process at a step, as a machine that fails does."""

    def __init__(self, step: int) -> None:
        self._step = step

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step == self._step:
            os.kill(os.getpid(), signal.SIGKILL)


def on_devices(count: int, program: str, *arguments: object) -> int:
    """Runs the file of a program on CPU devices, and returns its exit status."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, program, *map(str, arguments)]
    return subprocess.run(command, env=environment, check=False, timeout=300).returncode
