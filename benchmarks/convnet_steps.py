"""The steps of a long training against a hand-written loop: convolutional networks.

    uv run python benchmarks/convnet_steps.py [--network digits|mnist] [--rounds 15] [--turns 9] [--steps 150]
        [--json FILE]

A round is a process, see `_long_training.py`. `convnet.py` measures whole calls, beside Keras too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from _long_training import LongTraining, hand_written, measured_rounds, print_round
from _report import report, write
from _side_by_side import compared
from convnet import NETWORKS, Network, batches, logits_of, loss_of, model_of


def loop(network: Network, steps: int) -> Callable[[], None]:
    """The loop of a careful user."""
    optimizer = optax.adam(1e-3)

    def step(state: Any, x: Any, y: Any) -> Any:
        variables, slots = state
        loss, gradients = jax.value_and_grad(lambda values: loss_of(logits_of(values, x), y))(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return (optax.apply_updates(variables, updates), slots), loss

    init = jax.nn.initializers.glorot_uniform()
    variables = {f"{name}/kernel": init(jax.random.key(0), shape) for name, shape in network.shapes.items()}
    variables |= {f"{name}/bias": jnp.zeros(shape[-1]) for name, shape in network.shapes.items()}
    return hand_written(step, (variables, optimizer.init(variables)), batches(network), steps)


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=list(NETWORKS), default="digits")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--turns", type=int, default=9, help="of each contestant in a round")
    parser.add_argument("--steps", type=int, default=150, help="of a turn")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    network, steps, bare, ours = NETWORKS[args.network], args.steps, "bare loop", "estimator, default hooks"
    if args.child:
        makers: dict[str, Callable[[], Callable[[], None]]] = {
            bare: lambda: loop(network, steps),
            "another bare loop": lambda: loop(network, steps),
            ours: lambda: LongTraining(model_of(network), lambda: batches(network), steps),
        }
        print_round(makers, args.turns)
        return
    child = [__file__, "--child", "--network", args.network, "--steps", str(steps), "--turns", str(args.turns)]
    measured = measured_rounds(child, args.rounds)
    results = [compared(measured, name, bare) for name in measured if name != bare]
    title = f"Steps of a long training: {network.title}"
    write(args.json, report(title, results, steps=steps, targets={(ours, bare): 0.99}))


if __name__ == "__main__":
    main()
