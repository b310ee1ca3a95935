"""Cost of a training step against a hand-written jitted loop: MLP 64-128-128-10, batch 32, Adam.

    uv run python benchmarks/mlp.py [--rounds 15] [--steps 1000] [--busy N ...] [--json FILE]

Both sides draw the same fresh numpy batches. docs/performance.md has figures.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _batches import shuffled_rows
from _finished import Finished
from _load import add_options, compare_beside, loads_of
from _report import report, write

import estimator_core as ec

WIDTHS, BATCH, ROWS = (64, 128, 128, 10), 32, 4096
NO_HOOKS: dict[str, Any] = {"default_hooks": False, "log_step_count_steps": None, "save_summary_steps": None}


def batches(seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields fresh batches of random rows."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, WIDTHS[0])).astype(np.float32)
    y = generator.integers(0, WIDTHS[-1], size=ROWS).astype(np.int32)
    for rows in shuffled_rows(ROWS, BATCH, seed):
        yield x[rows], y[rows]


class FreshBatches:
    """The same batches as an input of the Estimator. It declares that it never writes into an array again, and it
    starts from the beginning with every call.
    """

    input_options = ec.inputs.InputOptions(fresh_arrays=True, replay=False)

    def __init__(self) -> None:
        self._batches = batches(1)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return self

    def __next__(self) -> tuple[np.ndarray, np.ndarray]:
        return next(self._batches)


def logits_of(variables: dict[str, Any], x: Any) -> Any:
    """Returns the logits of the network on plain arrays."""
    for index in range(len(WIDTHS) - 1):
        x = x @ variables[f"layer_{index}/kernel"] + variables[f"layer_{index}/bias"]
        x = jax.nn.relu(x) if index < len(WIDTHS) - 2 else x
    return x


def initial_variables() -> dict[str, Any]:
    """Returns Glorot-uniform kernels and zero biases."""
    init = jax.nn.initializers.glorot_uniform()
    variables: dict[str, Any] = {}
    for index, (rows, columns) in enumerate(itertools.pairwise(WIDTHS)):
        variables[f"layer_{index}/kernel"] = init(jax.random.key(index), (rows, columns))
        variables[f"layer_{index}/bias"] = jnp.zeros(columns)
    return variables


def bare_loop(steps: int) -> Callable[[], None]:
    """Returns the loop that a careful user writes, with donated state and without reads."""
    optimizer = optax.adam(1e-3)

    def loss_fn(variables: Any, x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(logits_of(variables, x), y).mean()

    @jax.jit
    def init(variables: Any) -> Any:
        return optimizer.init(variables)

    def step(variables: Any, slots: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_fn)(variables, x, y)
        updates, slots = optimizer.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, loss

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def run() -> None:
        variables = initial_variables()
        slots = init(variables)
        source = batches(1)
        for _ in range(steps):
            x, y = next(source)
            variables, slots, loss = compiled(variables, slots, x, y)
        jax.block_until_ready((variables, loss))

    return run


def scan_loop(steps: int, k: int) -> Callable[[], None]:
    """Returns a hand-written loop with k steps per dispatch."""
    optimizer = optax.adam(1e-3)

    def loss_fn(variables: Any, x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(logits_of(variables, x), y).mean()

    def one(carry: Any, batch: Any) -> Any:
        variables, slots = carry
        loss, gradients = jax.value_and_grad(loss_fn)(variables, *batch)
        updates, slots = optimizer.update(gradients, slots, variables)
        return (optax.apply_updates(variables, updates), slots), loss

    compiled = jax.jit(lambda carry, xs: jax.lax.scan(one, carry, xs), donate_argnums=0)

    def run() -> None:
        variables = initial_variables()
        carry = (variables, optimizer.init(variables))
        source = batches(1)
        for _ in range(steps // k):
            drawn = [next(source) for _ in range(k)]
            carry, losses = compiled(carry, (np.stack([x for x, _ in drawn]), np.stack([y for _, y in drawn])))
        jax.block_until_ready((carry, losses))

    return run


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """Defines the same network as a model_fn."""
    variables = {}
    for index, (rows, columns) in enumerate(itertools.pairwise(WIDTHS)):
        variables[f"layer_{index}/kernel"] = ec.get_variable(f"layer_{index}/kernel", (rows, columns))
        variables[f"layer_{index}/bias"] = ec.get_variable(f"layer_{index}/bias", (columns,))
    logits = logits_of(variables, features)
    return ec.EstimatorSpec(
        mode,
        loss=optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(),
        train_op=optax.adam(1e-3),
        predictions=logits,
    )


def estimator_loop(steps: int, **config: Any) -> Callable[[], None]:
    """Returns a warm Estimator: one object, one `train` call per round."""
    directory = tempfile.mkdtemp(prefix="bench-mlp-")
    estimator = ec.Estimator(
        model_fn,
        config=ec.RunConfig(
            model_dir=directory, tf_random_seed=1, save_checkpoints_steps=None, save_checkpoints_secs=None, **config
        ),
    )

    def run() -> None:
        estimator.train(FreshBatches, steps=steps, hooks=[Finished()])

    return run


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    add_options(parser)
    args = parser.parse_args()
    contestants = {
        "bare loop": bare_loop(args.steps),
        "estimator, default hooks": estimator_loop(args.steps),
        "estimator, no hooks": estimator_loop(args.steps, **NO_HOOKS),
        "estimator, no hooks, mesh of one": estimator_loop(args.steps, mesh={"data": 1}, **NO_HOOKS),
        "estimator, 20 steps a dispatch": estimator_loop(args.steps, steps_per_dispatch=20),
        "hand-written scan of 20": scan_loop(args.steps, 20),
    }
    pairs = [
        ("estimator, no hooks, mesh of one", "estimator, no hooks"),
        ("estimator, 20 steps a dispatch", "hand-written scan of 20"),
    ]
    results = compare_beside(loads_of(args), contestants, reference="bare loop", rounds=args.rounds, pairs=pairs)
    targets = {
        ("estimator, default hooks", "bare loop"): 0.95,
        ("estimator, no hooks, mesh of one", "estimator, no hooks"): 0.97,
        ("estimator, 20 steps a dispatch", "bare loop"): 1.2,
        ("estimator, 20 steps a dispatch", "hand-written scan of 20"): 0.95,
    }
    write(args.json, report("MLP 64-128-128-10, batch 32, Adam", results, steps=args.steps, targets=targets))


if __name__ == "__main__":
    main()
