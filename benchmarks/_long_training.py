"""Steps of long trainings, beside hand-written loops: contestants take turns in a process, and a round is a process.

Each contestant trains without an end, and makes so many steps when it is its turn: one `train` call an Estimator, in a
thread of its own. So nothing but steps is measured, and contestants alternate several times a second, which the
changing speed of a shared machine hardly disturbs. Of two identical loops in one process one is up to 14% slower than
the other for good, by where its memory happens to lie; so a round is a process, and makes the contestants in an order
of its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from _finished import Finished

import estimator_core as ec


class LongTraining:
    """One `train` call that makes `steps` steps whenever it is told to."""

    def __init__(
        self, model_fn: Callable[..., Any], batches: Callable[[], Iterator[Any]], steps: int, **config: Any
    ) -> None:
        saving: dict[str, Any] = {"save_checkpoints_steps": None, "save_checkpoints_secs": None}
        directory = tempfile.mkdtemp(prefix="bench-steps-")
        self._estimator = ec.Estimator(
            model_fn, config=ec.RunConfig(model_dir=directory, tf_random_seed=1, **saving, **config)
        )
        self._batches, self._steps, self._ended = batches, steps, False
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._train)
        self._thread.start()
        self._done.acquire()

    def __call__(self) -> None:
        """Makes the steps."""
        self._go.release()
        self._done.acquire()

    def end(self) -> None:
        """Ends the training."""
        self._ended = True
        self._go.release()
        self._thread.join()

    def _train(self) -> None:
        training, finished = self, Finished()

        class Turns:
            input_options = ec.inputs.InputOptions(fresh_arrays=True, replay=False)

            def __iter__(self) -> Iterator[Any]:
                source = training._batches()
                while not training._ended:
                    yield from itertools.islice(source, training._steps)
                    finished.wait()
                    training._done.release()
                    training._go.acquire()

        self._estimator.train(Turns, max_steps=10**9, hooks=[finished])


def hand_written(step: Callable[..., Any], state: Any, source: Iterator[Any], steps: int) -> Callable[[], None]:
    """A loop with donated state, nothing read inside; `step(state, x, y)` gives the state and a loss."""
    compiled = jax.jit(step, donate_argnums=0)
    live = [state]

    def run() -> None:
        state, loss = live.pop(), None
        for _ in range(steps):
            state, loss = compiled(state, *next(source))
        jax.block_until_ready((state, loss))
        live.append(state)

    return run


def arguments(*, rounds: int, turns: int, steps: int) -> argparse.ArgumentParser:
    """The options of such a benchmark, with these defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--turns", type=int, default=turns, help="of each contestant in a round")
    parser.add_argument("--steps", type=int, default=steps, help="of a turn")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


def print_round(makers: Mapping[str, Callable[[], Callable[[], None]]], turns: int) -> None:
    """Prints the median seconds of a turn of each contestant, in this process."""
    order = np.random.default_rng()
    contestants = {name: makers[name]() for name in order.permutation(list(makers))}
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(turns + 2):
        for name in order.permutation(list(contestants)):
            began = time.perf_counter()
            contestants[name]()
            if turn >= 2:
                seconds[name].append(time.perf_counter() - began)
    for contestant in contestants.values():
        if isinstance(contestant, LongTraining):
            contestant.end()
    print(json.dumps({name: float(np.median(times)) for name, times in seconds.items()}))


def measured_rounds(args: argparse.Namespace, *options: str) -> dict[str, list[float]]:
    """What so many processes of this script print, by contestant.

    Args:
        args: as `arguments` gave them.
        options: further ones for each process.
    """
    child = [sys.executable, sys.argv[0], "--child", "--steps", str(args.steps), "--turns", str(args.turns), *options]
    measured: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        printed = subprocess.run(child, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for name, seconds in json.loads(printed).items():
            measured.setdefault(name, []).append(seconds)
    return {name: measured[name] for name in sorted(measured)}
