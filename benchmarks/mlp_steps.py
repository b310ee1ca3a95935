"""The steps of a long training against hand-written loops: MLP 64-128-128-10, batch 32, Adam.

    uv run python benchmarks/mlp_steps.py [--rounds 21] [--turns 15] [--steps 500] [--busy N ...] [--json FILE]

A round is a process, see `_long_training.py`. `mlp.py` measures whole calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import optax
from _long_training import BARE, CONTROL, LongTraining, arguments, hand_written, print_round, report_steps
from mlp import NO_HOOKS, batches, initial_variables, logits_of, model_fn

K = 20


def loop(steps: int) -> Callable[[], None]:
    """Returns a loop with one step per dispatch."""
    return hand_written(train_step, initial_state(), batches(1), steps)


def scan_loop(steps: int) -> Callable[[], None]:
    """Returns a loop with 20 steps per dispatch."""

    def several(state: Any, x: Any, y: Any) -> Any:
        return jax.lax.scan(lambda state, batch: train_step(state, *batch), state, (x, y))

    return hand_written(several, initial_state(), stacked(batches(1)), steps // K)


def stacked(source: Iterator[Any]) -> Iterator[Any]:
    """Yields 20 batches at a time."""
    while True:
        drawn = [next(source) for _ in range(K)]
        yield np.stack([x for x, _ in drawn]), np.stack([y for _, y in drawn])


def train_step(state: Any, x: Any, y: Any) -> Any:
    """Runs one step of the hand-written loops."""

    def loss_of(variables: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(logits_of(variables, x), y).mean()

    variables, slots = state
    loss, gradients = jax.value_and_grad(loss_of)(variables)
    updates, slots = optax.adam(1e-3).update(gradients, slots, variables)
    return (optax.apply_updates(variables, updates), slots), loss


def initial_state() -> Any:
    """Returns variables and slots."""
    variables = initial_variables()
    return variables, jax.jit(optax.adam(1e-3).init)(variables)


def training(steps: int, **config: Any) -> LongTraining:
    """Returns the training of the Estimator."""
    return LongTraining(model_fn, lambda: batches(1), steps, **config)


def main() -> None:
    """Runs the comparison."""
    args = arguments(rounds=21, turns=15, steps=500).parse_args()
    steps: int = args.steps
    scan, ours, grouped = "hand-written scan of 20", "estimator, default hooks", "estimator, 20 steps a dispatch"
    if args.child:
        makers: dict[str, Callable[[], Callable[[], None]]] = {
            BARE: lambda: loop(steps),
            CONTROL: lambda: loop(steps),
            scan: lambda: scan_loop(steps),
            ours: lambda: training(steps),
            "estimator, no hooks": lambda: training(steps, **NO_HOOKS),
            grouped: lambda: training(steps, steps_per_dispatch=K),
        }
        print_round(makers, args.turns)
        return
    idle = {(ours, BARE): 0.97, (grouped, BARE): 1.2, (grouped, scan): 0.97}
    report_steps("MLP", args, idle=idle, busy={(ours, CONTROL): 0.95, (grouped, scan): 0.95})


if __name__ == "__main__":
    main()
