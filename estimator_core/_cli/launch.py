"""Run a command as several processes of one machine that train together.

    estimator launch --processes 4 -- python train.py
    estimator launch --processes 2 --devices 4 -- estimator run experiment.py

Each process gets JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, JAX_PROCESS_ID and ESTIMATOR_RUN_SECRET. Output is shown
with the number of the process in front. SIGTERM and SIGINT are passed on. When one fails, the others get a minute to
end by themselves.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

from estimator_core.errors import ArgumentError

_GRACE_SECS = 60.0
_RESUMABLE = 75


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator launch`."""
    parser.add_argument("--processes", type=int, required=True, metavar="N", help="how many processes to start")
    parser.add_argument(
        "--devices", type=int, metavar="K", help="virtual CPU devices in each process (default: as jax finds them)"
    )
    parser.add_argument("--port", type=int, help="port of process 0 (default: a free one)")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what each process runs")


def run(args: argparse.Namespace) -> int:
    """Runs the command: 0 if all processes end well, 75 if starting them again goes on, else the first failure's."""
    program = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not program:
        raise ArgumentError("estimator launch: give the command to run after --, for example -- python train.py")
    if args.processes < 1:
        raise ArgumentError(f"--processes should be at least 1, given: {args.processes}.")
    port = args.port or _free_port()
    secret = os.environ.get("ESTIMATOR_RUN_SECRET") or secrets.token_hex(32)
    children = [
        subprocess.Popen(
            program,
            env=_environment(index, args.processes, port, args.devices) | {"ESTIMATOR_RUN_SECRET": secret},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for index in range(args.processes)
    ]
    readers = [
        threading.Thread(target=_show, args=(index, child.stdout, len(str(args.processes - 1))), daemon=True)
        for index, child in enumerate(children)
    ]
    for reader in readers:
        reader.start()
    previous = {
        number: signal.signal(number, lambda received, frame: _pass_on(children, received))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        statuses = _wait(children)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    for reader in readers:
        reader.join()
    return _exit_status(statuses)


def _environment(index: int, count: int, port: int, devices: int | None) -> dict[str, str]:
    environment = {
        **os.environ,
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "JAX_NUM_PROCESSES": str(count),
        "JAX_PROCESS_ID": str(index),
        "PYTHONUNBUFFERED": "1",
    }
    if devices is not None:
        flags = environment.get("XLA_FLAGS", "")
        environment["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={devices}".strip()
    return environment


def _wait(children: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """The exit statuses; what is left a minute after a failure is killed."""
    failed_at: float | None = None
    while any(child.poll() is None for child in children):
        if failed_at is None and any(child.returncode not in (None, 0) for child in children):
            failed_at = time.monotonic()
        if failed_at is not None and time.monotonic() - failed_at > _GRACE_SECS:
            for index, child in enumerate(children):
                if child.poll() is None:
                    print(f"estimator launch: process {index} did not end; it is killed.", file=sys.stderr)
                    child.kill()
        time.sleep(0.05)
    return [child.wait() for child in children]


def _exit_status(statuses: Sequence[int]) -> int:
    bad = [status for status in statuses if status != 0]
    if not bad:
        return 0
    # A process that was killed from outside, and others that ended for its sake, can all be started again.
    if all(status == _RESUMABLE or status < 0 for status in bad):
        return _RESUMABLE
    return next(status for status in bad if status != _RESUMABLE and status > 0)


def _pass_on(children: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    for child in children:
        if child.poll() is None:
            child.send_signal(number)


def _show(index: int, stream: IO[bytes] | None, width: int) -> None:
    assert stream is not None
    for line in stream:
        sys.stdout.write(f"[{index:>{width}}] {line.decode(errors='replace')}")
        sys.stdout.flush()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
