"""An asynchronous save of a 400 MB state: its duration, the time its call blocks, and the loss of a concurrent loop.

    uv run python benchmarks/save.py [--rounds 15] [--megabytes 400] [--json FILE]

Each round has a save that waits for the commit, and a save whose call alone is timed, after which a jitted loop runs
until the commit is done. Orbax's own asynchronous checkpointer does the same, and the loop also runs alone. The two
checkpointers take turns to begin. Both delete the previous checkpoint when the new one is complete. The state has four
equal arrays. The host buffers are warm, as in every save of a run except the first.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from _report import report, write
from _side_by_side import compared

from estimator_core.checkpoint import CheckpointItems, CheckpointStore


@dataclass(frozen=True)
class Way:
    """A way to save: a function that starts a save of the state under a number, and returns the function to wait for
    it.
    """

    start: Callable[[int], Callable[[], Any]]
    is_done: Callable[[], bool]


class Loop:
    """Work that resembles training: matrix products of about three milliseconds, one after the other."""

    def __init__(self) -> None:
        self._step = jax.jit(lambda x: jnp.tanh(x @ x) * 0.1)
        self._x = jnp.full((512, 512), 0.01)
        self.for_seconds(0.5)

    def while_(self, goes_on: Callable[[], bool]) -> float:
        """Returns the steps per second while a condition holds."""
        began, steps = time.perf_counter(), 0
        while goes_on():
            self._x = self._step(self._x)
            jax.block_until_ready(self._x)
            steps += 1
        return max(steps, 1) / (time.perf_counter() - began)

    def for_seconds(self, seconds: float) -> float:
        """Returns the steps per second of the loop alone."""
        end = time.perf_counter() + seconds
        return self.while_(lambda: time.perf_counter() < end)


def ours(directory: str, state: dict[str, Any]) -> Way:
    """Returns the store of a training run."""
    store = CheckpointStore(directory, keep_max=1)
    pending: list[Any] = []

    def start(step: int) -> Callable[[], Any]:
        clock = np.array([step, 0, 0, 0], np.uint32)
        pending[:] = [store.save(step, CheckpointItems(clock=clock, variables=state))]
        return store.wait

    return Way(start, lambda: (Path(directory) / "checkpoints" / str(pending[0].step)).exists())


def plain_orbax(directory: str, state: dict[str, Any]) -> Way:
    """Returns `AsyncCheckpointer` with its defaults."""
    checkpointer = ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler())
    saved: list[Path] = []

    def start(step: int) -> Callable[[], Any]:
        saved.append(Path(directory) / str(step))
        checkpointer.save(saved[-1], args=ocp.args.StandardSave(state))
        return wait

    def wait() -> None:
        checkpointer.wait_until_finished()
        while len(saved) > 1:
            shutil.rmtree(saved.pop(0))

    return Way(start, lambda: saved[-1].exists())


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = args.megabytes * 1_000_000 // 4 // 4 // 1000
    state = {f"part_{index}": jax.random.normal(jax.random.key(index), (rows, 1000)) for index in range(4)}
    seconds: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="bench-save-") as directory:
        ways = {name: way(f"{directory}/{name}", state) for name, way in {"ours": ours, "orbax": plain_orbax}.items()}
        loop, step = Loop(), 0
        for index in range(args.rounds + 1):
            found = {"loop alone": 1 / loop.for_seconds(1.0)}
            for name, way in list(ways.items())[:: -1 if index % 2 else 1]:
                began = time.perf_counter()
                way.start(step + 1)()
                found[f"{name}, whole save"] = time.perf_counter() - began
                began = time.perf_counter()
                wait = way.start(step + 2)
                found[f"{name}, the call"] = time.perf_counter() - began
                done = way.is_done
                found[f"loop beside {name}"] = 1 / loop.while_(lambda done=done: not done())
                wait()
                step += 2
            if index:
                for name, value in found.items():
                    seconds[name].append(value)
    whole = [
        compared(seconds, "ours, the call", "ours, whole save"),
        compared(seconds, "orbax, the call", "orbax, whole save"),
        compared(seconds, "ours, whole save", "orbax, whole save"),
    ]
    loops = [compared(seconds, f"loop beside {name}", "loop alone") for name in ways]
    blocks = [1 / value for value in (whole[0].ratio, whole[0].high, whole[0].low)]
    state_of = f"State of {args.megabytes} MB"
    write(
        args.json,
        report(
            f"{state_of}: whole save / call",
            whole,
            steps=1,
            unit=("ms", 1e3),
            targets={("ours, the call", "ours, whole save"): 1 / 0.03, ("ours, whole save", "orbax, whole save"): 0.9},
            notes=["the call blocks for {:.1%} [{:.1%}, {:.1%}] of a whole save".format(*blocks)],
        ),
        report(
            f"{state_of}: rate of the loop beside a save",
            loops,
            steps=1,
            unit=("ms", 1e3),
            targets={("loop beside ours", "loop alone"): 0.4},
        ),
    )


if __name__ == "__main__":
    main()
