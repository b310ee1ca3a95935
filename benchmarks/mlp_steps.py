"""The steps of a long training against hand-written loops: MLP 64-128-128-10, batch 32, Adam.

    uv run python benchmarks/mlp_steps.py [--rounds 21] [--turns 15] [--steps 500] [--json FILE]

A round is a process, see `_long_training.py`. `mlp.py` measures whole calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import optax
from _long_training import LongTraining, arguments, hand_written, measured_rounds, print_round
from _report import report, write
from _side_by_side import compared
from mlp import NO_HOOKS, batches, initial_variables, logits_of, model_fn

K = 20


def loop(steps: int) -> Callable[[], None]:
    """One step a dispatch."""
    return hand_written(train_step, initial_state(), batches(1), steps)


def scan_loop(steps: int) -> Callable[[], None]:
    """20 steps a dispatch."""

    def several(state: Any, x: Any, y: Any) -> Any:
        return jax.lax.scan(lambda state, batch: train_step(state, *batch), state, (x, y))

    return hand_written(several, initial_state(), stacked(batches(1)), steps // K)


def stacked(source: Iterator[Any]) -> Iterator[Any]:
    """20 batches at a time."""
    while True:
        drawn = [next(source) for _ in range(K)]
        yield np.stack([x for x, _ in drawn]), np.stack([y for _, y in drawn])


def train_step(state: Any, x: Any, y: Any) -> Any:
    """The step of the hand-written loops."""

    def loss_of(variables: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(logits_of(variables, x), y).mean()

    variables, slots = state
    loss, gradients = jax.value_and_grad(loss_of)(variables)
    updates, slots = optax.adam(1e-3).update(gradients, slots, variables)
    return (optax.apply_updates(variables, updates), slots), loss


def initial_state() -> Any:
    """Variables and slots."""
    variables = initial_variables()
    return variables, jax.jit(optax.adam(1e-3).init)(variables)


def training(steps: int, **config: Any) -> LongTraining:
    """The Estimator."""
    return LongTraining(model_fn, lambda: batches(1), steps, **config)


def main() -> None:
    """Runs the comparison."""
    args = arguments(rounds=21, turns=15, steps=500).parse_args()
    steps: int = args.steps
    bare, scan, grouped = "bare loop", "hand-written scan of 20", "estimator, 20 steps a dispatch"
    if args.child:
        makers: dict[str, Callable[[], Callable[[], None]]] = {
            bare: lambda: loop(steps),
            "another bare loop": lambda: loop(steps),
            scan: lambda: scan_loop(steps),
            "estimator, default hooks": lambda: training(steps),
            "estimator, no hooks": lambda: training(steps, **NO_HOOKS),
            grouped: lambda: training(steps, steps_per_dispatch=K),
        }
        print_round(makers, args.turns)
        return
    measured = measured_rounds(args)
    results = [compared(measured, name, bare) for name in measured if name != bare]
    results.append(compared(measured, grouped, scan))
    targets = {("estimator, default hooks", bare): 0.95, (grouped, bare): 1.2, (grouped, scan): 0.95}
    write(args.json, report("Steps of a long training: MLP", results, steps=steps, targets=targets))


if __name__ == "__main__":
    main()
