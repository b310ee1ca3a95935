"""Starts processes of this machine that train together, for tests: without restarts, with one text of all outputs."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO


def run_processes(
    command: Sequence[str],
    count: int,
    *,
    env: Mapping[str, str] | None = None,
    grace: float = 60.0,
    timeout: float = 280.0,
) -> subprocess.CompletedProcess[str]:
    """Runs a command as `count` processes that know each other, and waits for all of them.

    Args:
        command: the command of each process.
        count: the number of processes.
        env: the environment. None: that of this process.
        grace: the seconds after the first failure until the others are killed.
        timeout: the seconds until all are killed.

    Returns:
        The text that they wrote, each line after the number of its process, and a status. The status is 0 if all
        succeed. It is 75 if a signal or a status 75 ended them. Otherwise it is that of the failed process with the
        lowest number.

    Raises:
        subprocess.TimeoutExpired: the timeout has expired.

    Example:
        >>> import sys
        >>> code = "import os; print(os.environ['JAX_PROCESS_ID'])"
        >>> sorted(run_processes([sys.executable, "-c", code], 2).stdout.splitlines())
        ['[0] 0', '[1] 1']
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    told = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": str(count), "PYTHONUNBUFFERED": "1"}
    environment = {**(os.environ if env is None else env), **told}
    children = [
        subprocess.Popen(
            command,
            env={**environment, "JAX_PROCESS_ID": str(index)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        for index in range(count)
    ]
    lines: list[str] = []
    readers = [
        threading.Thread(target=_read, args=(f"[{index}] ", child.stdout, lines), daemon=True)
        for index, child in enumerate(children)
    ]
    for reader in readers:
        reader.start()
    try:
        killed, late = _wait(children, grace, time.monotonic() + timeout)
    finally:
        for child in children:  # an interrupted wait, or a time limit of pytest, leaves them running
            child.kill()
            child.wait()
    for reader in readers:
        reader.join()
    if late:
        raise subprocess.TimeoutExpired(list(command), timeout, "".join(lines))
    said = "".join(f"process {index} did not end; it is killed.\n" for index in killed)
    return subprocess.CompletedProcess(list(command), _status(children), "".join(lines), said)


def _wait(children: Sequence[subprocess.Popen[str]], grace: float, deadline: float) -> tuple[list[int], bool]:
    """Returns the processes killed after a failure of another one, and whether the timeout expired."""
    killed: list[int] = []
    kill_at = deadline
    while any(child.poll() is None for child in children):
        now = time.monotonic()
        if kill_at == deadline and any(child.returncode for child in children):
            kill_at = min(deadline, now + grace)
        if now > kill_at:
            killed += [index for index, child in enumerate(children) if child.poll() is None]
            for child in children:
                child.kill()
        time.sleep(0.05)
    return killed, time.monotonic() > deadline


def _status(children: Sequence[subprocess.Popen[str]]) -> int:
    bad = [child.returncode for child in children if child.returncode]
    own = [status for status in bad if status > 0 and status != 75]
    return own[0] if own else 75 if bad else 0


def _read(prefix: str, stream: IO[str] | None, lines: list[str]) -> None:
    assert stream is not None
    with stream:
        for line in stream:
            lines.append(prefix + line.rstrip("\n") + "\n")
