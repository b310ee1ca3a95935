"""Other work on the machine, in a stated amount: processes that spin, and processes that move memory.

    python _load.py spinning|memory PARENT

This script is one of these processes. It reports when it runs, and ends with PARENT.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from _side_by_side import Comparison, compare

#: The bytes that a process copies back and forth to move memory, more than any cache holds.
MEMORY_BYTES = 64 * 2**20
_LOOK_SECS = 0.2


@dataclass(frozen=True, kw_only=True)
class Load:
    """The other work on the machine.

    Args:
        spinning: the number of processes that only compute.
        memory: the number of processes that copy 64 MiB back and forth.
    """

    spinning: int = 0
    memory: int = 0

    def of(self, name: str) -> str:
        """Returns the name of a contestant under this load."""
        parts = [f"{self.spinning} spinning"] * bool(self.spinning) + [f"{self.memory} moving memory"] * bool(
            self.memory
        )
        return ", ".join([name, *parts])

    @contextmanager
    def running(self) -> Generator[None]:
        """Runs the processes within the context."""
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for kind, count in (("spinning", self.spinning), ("memory", self.memory)):
                command = [sys.executable, __file__, kind, str(os.getpid())]
                processes += [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(count)]
            for process in processes:
                assert process.stdout is not None
                if not process.stdout.readline():
                    raise RuntimeError(f"A process of the load ended with status {process.wait()}.")
            yield
        finally:
            for process in processes:
                process.kill()
                process.communicate()


IDLE = Load()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select loads. `loads_of` reads them."""
    parser.add_argument(
        "--busy", type=int, nargs="+", default=[], metavar="N", help="also measure beside N busy processes, for each N"
    )
    parser.add_argument(
        "--memory-traffic",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="also measure beside N processes that copy 64 MiB",
    )


def loads_of(args: argparse.Namespace) -> list[Load]:
    """Returns an idle machine, and the selected loads."""
    spinning, moving = [Load(spinning=n) for n in args.busy], [Load(memory=n) for n in args.memory_traffic]
    return [IDLE, *spinning, *moving]


def compare_beside(
    loads: Sequence[Load], contestants: Mapping[str, Callable[[], None]], **options: Any
) -> list[Comparison]:
    """Runs `compare` under each load."""
    results: list[Comparison] = []
    for load in loads:
        with load.running():
            found = compare(contestants, **options)
        results += [replace(one, name=load.of(one.name), reference=load.of(one.reference)) for one in found]
    return results


def spins() -> None:
    """Computes for a moment."""
    until = time.monotonic() + _LOOK_SECS
    while time.monotonic() < until:
        pass


def moves_memory() -> Callable[[], None]:
    """Returns a function that copies for a moment."""
    import numpy as np

    one = np.ones(MEMORY_BYTES, np.uint8)
    other = np.zeros_like(one)

    def moves() -> None:
        until = time.monotonic() + _LOOK_SECS
        while time.monotonic() < until:
            np.copyto(other, one)
            np.copyto(one, other)

    return moves


def main() -> None:
    """Works until it is killed, or until the parent has ended."""
    kind, parent = sys.argv[1], int(sys.argv[2])
    work = moves_memory() if kind == "memory" else spins
    print("ready", flush=True)
    while os.getppid() == parent:
        work()


if __name__ == "__main__":
    main()
