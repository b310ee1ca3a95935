"""Runs programs of the tests in separate processes with a number of devices. A process may be killed at a step."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import Any

import estimator_core as ec


class Killed(ec.Hook):
    """Kills the process at a step, like a failure of the machine."""

    def __init__(self, step: int) -> None:
        self._step = step

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step == self._step:
            os.kill(os.getpid(), signal.SIGKILL)


def on_devices(count: int, program: str, *arguments: object) -> int:
    """Runs a program file on CPU devices, and returns its exit status."""
    command = [sys.executable, program, *map(str, arguments)]
    return subprocess.run(command, env=_environment(count), check=False, timeout=300).returncode


def joined(devices: int, program: str, *arguments: object) -> tuple[int, str]:
    """Runs a program in two processes with `devices` devices each: `program ADDRESS PROCESS ARGUMENTS`.

    Returns:
        The exit status of the second process, and the last line that it printed.
    """
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    environment = _environment(devices) | {"JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}

    def begun(process: int) -> subprocess.Popen[str]:
        command = [sys.executable, program, address, str(process), *map(str, arguments)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    first, second = begun(0), begun(1)
    printed = second.communicate(timeout=200)[0]
    if second.returncode < 0:
        first.kill()  # as a launcher does; otherwise it would wait 100 seconds for the other process
    first.communicate(timeout=200)
    return second.returncode, printed.splitlines()[-1] if printed else ""  # gloo also prints


def _environment(devices: int) -> dict[str, str]:
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
