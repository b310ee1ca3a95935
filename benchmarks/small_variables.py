"""A model of many small variables: a dense layer of 4 x 16 for each of 32 columns, batch 32, Adam.

    uv run python benchmarks/small_variables.py [--rounds 15] [--steps 1000] [--columns 32] [--json FILE]

Both sides have three arrays for each variable, and draw the same fresh numpy batches.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _report import report, write
from _side_by_side import compare

import estimator_core as ec

ROWS, BATCH, WIDTH, UNITS = 4096, 32, 4, 16


def batches(columns: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Fresh batches: one permutation an epoch, one fancy index a batch."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, columns * WIDTH)).astype(np.float32)
    y = np.tanh(x).sum(1).astype(np.float32)
    shuffler = np.random.default_rng(seed)
    while True:
        order = shuffler.permutation(ROWS)
        for start in range(0, ROWS, BATCH):
            rows = order[start : start + BATCH]
            yield x[rows], y[rows]


def prediction(variables: dict[str, Any], x: Any, columns: int) -> Any:
    """A layer for each column, and a sum of all."""
    hidden = [
        jax.nn.relu(
            x[:, WIDTH * index : WIDTH * (index + 1)] @ variables[f"{index}/kernel"] + variables[f"{index}/bias"]
        )
        for index in range(columns)
    ]
    return jnp.concatenate(hidden, axis=1) @ variables["out"]


def shapes(columns: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the variables."""
    kernels = {f"{index}/kernel": (WIDTH, UNITS) for index in range(columns)}
    biases = {f"{index}/bias": (UNITS,) for index in range(columns)}
    return {**kernels, **biases, "out": (columns * UNITS,)}


def bare_loop(steps: int, columns: int) -> Callable[[], None]:
    """The loop a careful user writes: donated state, nothing read inside."""
    optimizer = optax.adam(1e-3)

    def step(variables: Any, slots: Any, x: Any, y: Any) -> Any:
        def loss_of(values: Any) -> Any:
            return jnp.mean((prediction(values, x, columns) - y) ** 2)

        loss, gradients = jax.value_and_grad(loss_of)(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, loss

    compiled = jax.jit(step, donate_argnums=(0, 1))
    generator = np.random.default_rng(2)
    variables = {
        name: jnp.asarray(generator.normal(0, 0.1, shape).astype(np.float32)) for name, shape in shapes(columns).items()
    }
    live = {"variables": variables, "slots": jax.jit(optimizer.init)(variables)}
    source = batches(columns, 1)

    def run() -> None:
        variables, slots = live["variables"], live["slots"]
        for _ in range(steps):
            variables, slots, loss = compiled(variables, slots, *next(source))
        jax.block_until_ready((variables, loss))
        live.update(variables=variables, slots=slots)

    return run


def estimator_loop(steps: int, columns: int, **config: Any) -> Callable[[], None]:
    """The Estimator with its default hooks: one object, one `train` call a round."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        init = jax.nn.initializers.normal(0.1)
        variables = {name: ec.get_variable(name, shape, init) for name, shape in shapes(columns).items()}
        predictions = prediction(variables, features, columns)
        loss = jnp.mean((predictions - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adam(1e-3), predictions=predictions)

    class Fresh:
        input_options = ec.inputs.InputOptions(fresh_arrays=True, replay=False)

        def __iter__(self) -> Iterator[Any]:
            return batches(columns, 1)

    directory = tempfile.mkdtemp(prefix="bench-small-")
    saving: dict[str, Any] = {"save_checkpoints_steps": None, "save_checkpoints_secs": None}
    estimator = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=directory, tf_random_seed=1, **saving, **config))

    def run() -> None:
        estimator.train(Fresh, steps=steps)
        jax.block_until_ready(estimator._engine.live.carried)  # pyright: ignore[reportPrivateUsage]

    return run


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=32)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    contestants = {
        "bare loop": bare_loop(args.steps, args.columns),
        "estimator, default hooks": estimator_loop(args.steps, args.columns),
        'estimator, "auto"': estimator_loop(args.steps, args.columns, steps_per_dispatch="auto"),
    }
    results = compare(contestants, reference="bare loop", rounds=args.rounds)
    targets = {("estimator, default hooks", "bare loop"): 0.95}
    title = f"Many small variables: {len(shapes(args.columns))}, and two slots of each"
    write(args.json, report(title, results, steps=args.steps, targets=targets))


if __name__ == "__main__":
    main()
