"""Measures the cost of agreement between the processes of a run: time and bytes per batch and per boundary.

    uv run python tests/scale/control_plane.py [--processes 2 4 8] [--batches 300] [--json FILE]

It runs real processes on this machine (gloo, one device each), and then counts for 128 and 1,024 processes. The
reduction is counted in the program compiled for as many devices. An agreement is counted with a store in memory instead
of jax's service.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from estimator_cluster import connect, service, shared_feed
from estimator_cluster.store import SealedStore
from estimator_core import Processes
from estimator_core.coordinator import Coordinator

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from _report import report, write  # noqa: E402
from _side_by_side import compared  # noqa: E402

OPTIONS = {"heartbeat_secs": 30, "start_secs": 200, "grace_secs": 5}
TOLD = {"rows": 32, "size": 32, "form": "['x'] float32[64]", "flags": {"stop": None, "due": []}}
VALUE = "x" * 100
_MOVED = re.compile(r"= (\S+) (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")


def collectives(mesh: jax.sharding.Mesh) -> list[str]:
    """Returns the data that the reduction of the flags moves, from the text of its program."""
    shape = (mesh.size, 2 * shared_feed.WIDTH)
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(tuple(mesh.axis_names)))
    flags = jax.ShapeDtypeStruct(shape, "int32", sharding=sharding)
    text = shared_feed.reduction(mesh).lower(flags).compile().as_text()  # type: ignore[attr-defined]
    return [f"{kind} {shape}" for shape, kind in _MOVED.findall(text)]


def worker(address: str, count: int, index: int, batches: int) -> None:
    """Runs one process: batches of the same form, announced two ahead, and then agreements."""
    here = connect(Processes(address, count, index, "the benchmark"), OPTIONS)
    asked = _count_requests()
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    tell = shared_feed.agreed_batches(shared_feed.step_flags(mesh), here, "batches")
    waits = [tell(TOLD) for _ in range(2)]
    seconds = []
    for _ in range(batches):
        began = time.perf_counter()
        waits.append(tell(TOLD))
        waits.pop(0)()
        seconds.append(time.perf_counter() - began)
    of_batches = dict(asked)
    boundary = _timed_agreements(here)
    if index == 0:
        found = {"batch": seconds, "boundary": boundary, "asked": of_batches, "collectives": collectives(mesh)}
        sys.stdout.write(json.dumps(found) + "\n")


def _timed_agreements(here: Coordinator) -> list[float]:
    seconds = []
    for _ in range(20):
        here.barrier("begin", 60.0)
        began = time.perf_counter()
        here.agree("boundary", VALUE, 60.0)
        seconds.append(time.perf_counter() - began)
    return seconds


def _count_requests() -> dict[str, int]:
    """Counts the requests of the main thread to jax's service from now on, and their bytes."""
    asked = {"requests": 0, "bytes": 0}

    def counting(ask: Callable[..., Any]) -> Callable[..., Any]:
        def counted(self: service.Service, *arguments: str) -> Any:
            answer = ask(self, *arguments)
            if threading.current_thread() is threading.main_thread():
                asked["requests"] += 1
                asked["bytes"] += len(json.dumps([arguments, answer]))
            return answer

        return counted

    for name in ("put", "listed", "delete"):
        setattr(service.Service, name, counting(getattr(service.Service, name)))
    return asked


def real(count: int, batches: int) -> dict[str, Any]:
    """Runs `count` processes and returns the measurements of process 0."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "ESTIMATOR_RUN_SECRET": "of the benchmark"}
    command = [sys.executable, str(Path(__file__)), "--worker", address, str(count)]
    processes = [
        subprocess.Popen([*command, str(index), str(batches)], env=environment, stdout=subprocess.PIPE, text=True)
        for index in range(count)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert not any(process.returncode for process in processes), [process.returncode for process in processes]
    return json.loads(outputs[0].splitlines()[-1])


def counted(count: int) -> str:
    """Returns the requests and bytes of one agreement with a store in memory."""
    sys.path.insert(0, str(HERE.parent))
    from plugins.cluster.tests.fake_store import FakeStore, coordinators

    store = FakeStore(count)
    (first,) = coordinators(store, count, made=1)
    sealed = SealedStore(store, b"of the run")
    for index in range(1, count):
        sealed.put(f"est/r/0/topics/boundary/0/{index}", VALUE)
    before = store.requests, store.moved
    first.agree("boundary", VALUE, 60.0)
    of_first = store.requests - before[0], store.moved - before[1]
    answer = sum(len(value) for key, value in store.values.items() if "/all/" in key)
    first.close()
    return (
        f"{count:>5} processes: process 0 makes {of_first[0]} requests, {of_first[1]:,} bytes; each of the others 2 "
        f"requests, about {answer + len(VALUE):,} bytes, when the values of all are {len(VALUE)} bytes each"
    )


def program_text(count: int) -> str:
    """Returns the collectives of the reduction on a number of devices, from a process with as many virtual devices."""
    flags = f"--xla_force_host_platform_device_count={count}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    command = [sys.executable, str(Path(__file__)), "--text"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return f"{count:>5} devices: a batch moves {done.stdout.strip()} a device, and no request"


def main() -> None:
    """Measures, counts and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--counted", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--text", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        address, *numbers = arguments.worker
        worker(address, *map(int, numbers))
        return
    if arguments.text:
        sys.stdout.write("; ".join(collectives(jax.make_mesh((jax.device_count(),), ("data",)))))
        return
    times: dict[str, list[float]] = {}
    notes: list[str] = []
    for count in arguments.processes:
        found = real(count, arguments.batches)
        # One median of each fifth, so that all have the same number.
        for name, seconds in (("a batch", found["batch"]), ("an agreement", found["boundary"])):
            part = len(seconds) // 5
            times[f"{name}, {count} processes"] = [
                statistics.median(seconds[start * part : (start + 1) * part]) for start in range(5)
            ]
        notes.append(
            f"{count:>5} processes: {arguments.batches} batches made {found['asked']['requests']} requests of "
            f"{found['asked']['bytes']} bytes to the service; a batch moves {'; '.join(found['collectives'])} a device"
        )
    notes += [program_text(count) for count in arguments.counted]
    notes += [counted(count) for count in (*arguments.processes, *arguments.counted)]
    first = f"a batch, {arguments.processes[0]} processes"
    rows = [compared(times, name, first, smaller_is_better=True) for name in times]
    write(arguments.json, report("Agreement of processes", rows, steps=1, unit=("us", 1e6), notes=notes))


if __name__ == "__main__":
    main()
