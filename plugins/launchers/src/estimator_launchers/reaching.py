"""Checks whether the processes of a run reach each other: process 0 listens at its port, and the others connect."""

from __future__ import annotations

import errno
import re
import socket
import time
from collections.abc import Mapping

from estimator_core import Processes

#: The first words of answers that report no problem.
WELL = ("yes", "nobody")
_PAUSE_SECS = 0.1
_BIND = "JAX_COORDINATOR_BIND_ADDRESS"
#: The ports of jax for Slurm jobs: their number, and the highest.
_PORTS, _HIGHEST = 2**12, 2**16 - 1


def address_of(group: Processes, environ: Mapping[str, str]) -> str:
    """Returns the address of process 0. "" if only jax knows it, once it connects.

    Example:
        >>> told = {"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "gpu[07-09,12],cpu1"}
        >>> address_of(Processes("", 4, 2, "SLURM_STEP_NUM_TASKS", method="slurm"), told)
        'gpu07:61447'
    """
    if group.coordinator or group.method != "slurm":
        return group.coordinator
    first = re.match(r"([^,\[]+)(?:\[([^,\-\]]+))?", environ["SLURM_STEP_NODELIST"])
    host = "".join(first.groups(default="")) if first else ""
    port = environ.get("JAX_COORDINATOR_PORT") or int(environ["SLURM_JOB_ID"]) % _PORTS + _HIGHEST + 1 - _PORTS
    return f"{host}:{port}"


def reached(group: Processes | None, environ: Mapping[str, str], seconds: float) -> str:
    """Returns what this process reaches, in words that begin with "yes", "no" or "nobody".

    Args:
        group: the processes of the run. None: this process is alone.
        environ: the environment.
        seconds: the seconds that processes wait for each other.
    """
    if group is None:
        return "nobody to reach"
    address = address_of(group, environ)
    if not address:
        return f"no: jax finds the address of process 0 when it connects ({group.method})"
    deadline = time.monotonic() + seconds
    if group.index:
        return _come(address, group.index, deadline)
    place = environ.get(_BIND) or f"[::]:{address.rpartition(':')[2]}"
    if not re.fullmatch(r".+:\d+", place):
        return f"no: {_BIND}={place!r} should be HOST:PORT, for example 10.0.0.1:8476"
    try:
        with _server(place) as server:
            missing = _wait(server, group.count, deadline)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and _come(address, 0, 0.0) == "yes":
            return "yes: a program already listens there, so other processes were not awaited"
        return f"no: process 0 cannot listen at {address}: {error}"
    if missing:
        who = ", ".join(map(str, missing))
        return f"no: of {group.count} processes {who} did not reach {address} within {seconds:g} s"
    return f"yes: all {group.count} processes have reached {address}"


def _come(address: str, index: int, deadline: float) -> str:
    host, _, port = address.rpartition(":")
    while True:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=5) as connection:
                connection.sendall(b"%d\n" % index)
            return "yes"
        except OSError as error:
            if time.monotonic() > deadline:
                return f"no: {address}: {error}; process 0 listens there once it has started"
        time.sleep(_PAUSE_SECS)


def _server(place: str) -> socket.socket:
    host, _, port = place.rpartition(":")
    host = host.strip("[]")
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, int(port)), family=family, dualstack_ipv6=host == "::")


def _wait(server: socket.socket, count: int, deadline: float) -> list[int]:
    """Returns the processes that did not connect."""
    missing = set(range(1, count))
    while missing and (left := deadline - time.monotonic()) > 0:
        server.settimeout(left)
        try:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(1.0)
                said = connection.recv(64)
        except OSError:
            continue
        missing -= {int(said)} if re.fullmatch(rb"\d+\n", said) else set()
    return sorted(missing)
