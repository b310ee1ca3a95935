"""A model of many small variables: a dense layer of 4 x 16 for each of 32 columns, batch 32, Adam.

    uv run python benchmarks/small_variables.py [--rounds 15] [--turns 9] [--steps 300] [--columns 32]
        [--busy N ...] [--json FILE]

Both sides draw the same fresh numpy batches. A round is a process, see `_long_training.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _batches import shuffled_rows
from _long_training import BARE, CONTROL, LongTraining, arguments, hand_written, print_round, report_steps

import estimator_core as ec

ROWS, BATCH, WIDTH, UNITS = 4096, 32, 4, 16


def batches(columns: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields fresh batches of random rows."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, columns * WIDTH)).astype(np.float32)
    y = np.tanh(x).sum(1).astype(np.float32)
    for rows in shuffled_rows(ROWS, BATCH, seed):
        yield x[rows], y[rows]


def prediction(variables: dict[str, Any], x: Any, columns: int) -> Any:
    """Returns the sum of a layer for each column."""
    hidden = [
        jax.nn.relu(
            x[:, WIDTH * index : WIDTH * (index + 1)] @ variables[f"{index}/kernel"] + variables[f"{index}/bias"]
        )
        for index in range(columns)
    ]
    return jnp.concatenate(hidden, axis=1) @ variables["out"]


def shapes(columns: int) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the variables."""
    kernels = {f"{index}/kernel": (WIDTH, UNITS) for index in range(columns)}
    biases = {f"{index}/bias": (UNITS,) for index in range(columns)}
    return {**kernels, **biases, "out": (columns * UNITS,)}


def loop(steps: int, columns: int) -> Callable[[], None]:
    """Returns the loop of a careful user."""
    optimizer = optax.adam(1e-3)

    def step(state: Any, x: Any, y: Any) -> Any:
        def loss_of(values: Any) -> Any:
            return jnp.mean((prediction(values, x, columns) - y) ** 2)

        variables, slots = state
        loss, gradients = jax.value_and_grad(loss_of)(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return (optax.apply_updates(variables, updates), slots), loss

    generator = np.random.default_rng(2)
    variables = {
        name: jnp.asarray(generator.normal(0, 0.1, shape).astype(np.float32)) for name, shape in shapes(columns).items()
    }
    return hand_written(step, (variables, jax.jit(optimizer.init)(variables)), batches(columns, 1), steps)


def model_of(columns: int) -> Callable[..., ec.EstimatorSpec]:
    """Returns the same model as a model_fn."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        init = jax.nn.initializers.normal(0.1)
        variables = {name: ec.get_variable(name, shape, init) for name, shape in shapes(columns).items()}
        predictions = prediction(variables, features, columns)
        loss = jnp.mean((predictions - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adam(1e-3), predictions=predictions)

    return model_fn


def main() -> None:
    """Runs the comparison."""
    parser = arguments(rounds=15, turns=9, steps=300)
    parser.add_argument("--columns", type=int, default=32)
    args = parser.parse_args()
    columns, steps, ours = args.columns, args.steps, "estimator, default hooks"
    if args.child:
        print_round(
            {
                BARE: lambda: loop(steps, columns),
                CONTROL: lambda: loop(steps, columns),
                ours: lambda: LongTraining(model_of(columns), lambda: batches(columns, 1), steps),
            },
            args.turns,
        )
        return
    title = f"{len(shapes(columns))} small variables, and two slots of each"
    options = ("--columns", str(columns))
    report_steps(title, args, *options, idle={(ours, BARE): 0.95}, busy={(ours, CONTROL): 0.95})


if __name__ == "__main__":
    main()
