"""The steps of a long training against hand-written loops: MLP 64-128-128-10, batch 32, Adam.

    uv run python benchmarks/mlp_steps.py [--rounds 21] [--turns 15] [--steps 500] [--json FILE]

Each contestant trains without an end, and makes so many steps when it is its turn: one `train` call an Estimator, in a
thread of its own. So nothing but steps is measured, and contestants alternate twenty times a second, which the changing
speed of a shared machine hardly disturbs. A round is a process: of two identical loops in one process one is up to 14%
slower than the other for good, by where its memory happens to lie; so they are made in another order each time.
`mlp.py` measures whole calls.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from _report import report, write
from _side_by_side import compared
from mlp import NO_HOOKS, batches, initial_variables, logits_of, model_fn

import estimator_core as ec

K = 20


def train_step(optimizer: Any) -> Callable[..., Any]:
    """The step of the hand-written loops."""

    def loss_fn(variables: Any, x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(logits_of(variables, x), y).mean()

    def step(state: Any, x: Any, y: Any) -> Any:
        variables, slots = state
        loss, gradients = jax.value_and_grad(loss_fn)(variables, x, y)
        updates, slots = optimizer.update(gradients, slots, variables)
        return (optax.apply_updates(variables, updates), slots), loss

    return step


def hand_written(steps: int, k: int = 1) -> Callable[[], None]:
    """A loop with donated state, nothing read inside; with k > 1 a scan over so many batches."""
    optimizer = optax.adam(1e-3)
    one = train_step(optimizer)
    program = one if k == 1 else lambda state, x, y: jax.lax.scan(lambda state, xy: one(state, *xy), state, (x, y))
    compiled = jax.jit(program, donate_argnums=0)
    variables = initial_variables()
    live = [(variables, jax.jit(optimizer.init)(variables))]
    source = batches(1)

    def run() -> None:
        state = live.pop()
        for _ in range(steps // k):
            if k == 1:
                x, y = next(source)
            else:
                drawn = [next(source) for _ in range(k)]
                x, y = np.stack([x for x, _ in drawn]), np.stack([y for _, y in drawn])
            state, loss = compiled(state, x, y)
        jax.block_until_ready((state, loss))
        live.append(state)

    return run


class LongTraining:
    """One `train` call that makes `steps` steps whenever it is told to."""

    def __init__(self, steps: int, **config: Any) -> None:
        saving: dict[str, Any] = {"save_checkpoints_steps": None, "save_checkpoints_secs": None}
        directory = tempfile.mkdtemp(prefix="bench-mlp-")
        self._estimator = ec.Estimator(
            model_fn, config=ec.RunConfig(model_dir=directory, tf_random_seed=1, **saving, **config)
        )
        self._steps, self._ended = steps, False
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
        training = self

        class Turns:
            input_options = ec.inputs.InputOptions(fresh_arrays=True, replay=False)

            def __iter__(self) -> Iterator[Any]:
                source = batches(1)
                while not training._ended:
                    yield from itertools.islice(source, training._steps)
                    jax.block_until_ready(training._estimator._engine.live.carried)  # pyright: ignore[reportPrivateUsage]
                    training._done.release()
                    training._go.acquire()

        self._estimator.train(Turns, max_steps=10**9)


def one_round(steps: int, turns: int) -> dict[str, float]:
    """Median seconds of a turn of each contestant, in this process."""
    makers: dict[str, Callable[[], Any]] = {
        "bare loop": lambda: hand_written(steps),
        "another bare loop": lambda: hand_written(steps),
        "hand-written scan of 20": lambda: hand_written(steps, K),
        "estimator, default hooks": lambda: LongTraining(steps),
        "estimator, no hooks": lambda: LongTraining(steps, **NO_HOOKS),
        "estimator, 20 steps a dispatch": lambda: LongTraining(steps, steps_per_dispatch=K),
    }
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
    return {name: float(np.median(times)) for name, times in seconds.items()}


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--turns", type=int, default=15, help="of each contestant in a round")
    parser.add_argument("--steps", type=int, default=500, help="of a turn")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(one_round(args.steps, args.turns)))
        return
    child = [sys.executable, __file__, "--child", "--steps", str(args.steps), "--turns", str(args.turns)]
    measured: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        found = subprocess.run(child, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for name, seconds in json.loads(found).items():
            measured.setdefault(name, []).append(seconds)
    bare, scan, grouped = "bare loop", "hand-written scan of 20", "estimator, 20 steps a dispatch"
    results = [compared(measured, name, bare) for name in sorted(measured) if name != bare]
    results.append(compared(measured, grouped, scan))
    targets = {("estimator, default hooks", bare): 0.95, (grouped, bare): 1.2, (grouped, scan): 0.95}
    write(args.json, report("Steps of a long training: MLP", results, steps=args.steps, targets=targets))


if __name__ == "__main__":
    main()
