"""The steps of a long training against a hand-written loop: convolutional networks.

    uv run python benchmarks/convnet_steps.py [--network digits|mnist] [--rounds 15] [--turns 9] [--steps 150]
        [--busy N ...] [--json FILE]

A round is a process, see `_long_training.py`. `convnet.py` measures whole calls, also beside Keras.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from _long_training import BARE, CONTROL, LongTraining, arguments, hand_written, print_round, report_steps
from convnet import NETWORKS, Network, batches, logits_of, loss_of, model_of


def loop(network: Network, steps: int) -> Callable[[], None]:
    """Returns the loop of a careful user."""
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
    parser = arguments(rounds=15, turns=9, steps=150)
    parser.add_argument("--network", choices=list(NETWORKS), default="digits")
    args = parser.parse_args()
    network, steps, ours = NETWORKS[args.network], args.steps, "estimator, default hooks"
    if args.child:
        makers: dict[str, Callable[[], Callable[[], None]]] = {
            BARE: lambda: loop(network, steps),
            CONTROL: lambda: loop(network, steps),
            ours: lambda: LongTraining(model_of(network), lambda: batches(network), steps),
        }
        print_round(makers, args.turns)
        return
    options = ("--network", args.network)
    report_steps(network.title, args, *options, idle={(ours, BARE): 0.99}, busy={(ours, CONTROL): 0.97})


if __name__ == "__main__":
    main()
