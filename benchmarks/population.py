"""Ten seeds of a small network trained together, against the same ten runs one after another.

    uv run python benchmarks/population.py [--runs 10] [--steps 10000] [--rounds 5] [--json FILE]

Both sides run as a user starts them: a RunConfig with a model_dir and a seed, default hooks, a checkpoint at the
beginning and at the end. Batches and dropout follow the seed of each run. Programs are kept from one round to the next:
the first round compiles them and does not count. The bound is a hand-written mapped step, which writes nothing. The
tables show wall time and processor time of all threads, which other work on the machine disturbs less. Then the largest
relative difference of a weight is printed, for a training of 200 steps.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _report import report, write
from _side_by_side import compared

import estimator_core as ec
from estimator_runs import Member, Population

WIDTHS = (64, 64, 10)


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """Defines two layers with dropout, on digits of 8 x 8."""
    hidden = features["x"]
    for layer, width in enumerate(WIDTHS[:-1]):
        weights = ec.get_variable(f"weights_{layer}", (hidden.shape[1], width))
        hidden = jax.nn.relu(hidden @ weights + ec.get_variable(f"bias_{layer}", (width,)))
    keep = jax.random.bernoulli(ec.next_rng_key("dropout"), 0.9, hidden.shape)
    logits = jnp.where(keep, hidden / 0.9, 0) @ ec.get_variable("out", (WIDTHS[-2], WIDTHS[-1]))
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adam(1e-3))


def data() -> tuple[np.ndarray, np.ndarray]:
    """Returns ten clouds of 64 numbers, with as many rows as the digits of scikit-learn."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(WIDTHS[-1], 64))
    labels = generator.integers(0, WIDTHS[-1], 1797).astype(np.int32)
    return (centres[labels] + generator.normal(size=(1797, 64))).astype(np.float32), labels


def members(folder: Path, count: int) -> list[Member]:
    """Returns the runs, in fresh model_dirs."""
    x, labels = data()
    made: list[Member] = []
    for seed in range(count):
        config = ec.RunConfig(str(folder / str(seed)), tf_random_seed=seed)
        inputs = ec.inputs.numpy_input_fn({"x": x}, labels, batch_size=32, num_epochs=None, shuffle=True, seed=seed)
        made.append(Member(name=f"seed {seed}", estimator=ec.Estimator(model_fn, config=config), input_fn=inputs))
    return made


def together(count: int, steps: int) -> list[dict[str, np.ndarray]]:
    """Returns the weights of runs that are trained together."""
    with tempfile.TemporaryDirectory() as folder:
        runs = members(Path(folder), count)
        Population(runs).train(steps)
        return [run.estimator.variables for run in runs]


def one_after_another(count: int, steps: int) -> list[dict[str, np.ndarray]]:
    """Returns the weights of runs that are trained alone."""
    with tempfile.TemporaryDirectory() as folder:
        return [run.estimator.train(run.input_fn, max_steps=steps).variables for run in members(Path(folder), count)]


def by_hand(count: int, steps: int) -> Any:
    """Returns the bound: a hand-written step mapped with `jax.vmap`, on the same data, without files and hooks."""
    optimizer = optax.adam(1e-3)

    def loss_of(weights: Any, x: Any, labels: Any, key: Any) -> Any:
        hidden = x
        for layer in range(len(WIDTHS) - 1):
            hidden = jax.nn.relu(hidden @ weights[f"weights_{layer}"] + weights[f"bias_{layer}"])
        keep = jax.random.bernoulli(key, 0.9, hidden.shape)
        logits = jnp.where(keep, hidden / 0.9, 0) @ weights["out"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(state: Any, x: Any, labels: Any) -> Any:
        weights, slots, key, number = state
        at = jax.random.fold_in(key, number)
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, labels, at)
        updates, slots = optimizer.update(gradients, slots, weights)
        return (optax.apply_updates(weights, updates), slots, key, number + 1), loss

    def first(key: Any) -> Any:
        draw, inputs, weights = jax.nn.initializers.glorot_uniform(), 64, {}
        for layer, width in enumerate(WIDTHS[:-1]):
            weights[f"weights_{layer}"] = draw(jax.random.fold_in(key, layer), (inputs, width))
            weights[f"bias_{layer}"], inputs = jnp.zeros(width), width
        weights["out"] = draw(jax.random.fold_in(key, 9), (inputs, WIDTHS[-1]))
        return weights, optimizer.init(weights), key, 0

    x, labels = data()
    generators = [np.random.default_rng(seed) for seed in range(count)]
    orders = [np.empty(0, np.int64)] * count
    run = jax.jit(jax.vmap(step), donate_argnums=0)
    state = jax.jit(jax.vmap(first))(jax.vmap(jax.random.key)(np.arange(count)))
    for _ in range(steps):
        for index, generator in enumerate(generators):
            if len(orders[index]) < 32:
                orders[index] = np.concatenate([orders[index], generator.permutation(len(x))])
        rows = np.stack([order[:32] for order in orders])
        orders = [order[32:] for order in orders]
        state, _ = run(state, x[rows], labels[rows])
    return jax.block_until_ready(state)


def seconds(side: Callable[[], object]) -> tuple[float, float]:
    """Returns the wall time and processor time of a side, in seconds."""
    began, used = time.perf_counter(), time.process_time()
    side()
    return time.perf_counter() - began, time.process_time() - used


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    names, bound = ("together", "one after another"), "vmap by hand"
    sides: dict[str, Callable[[], object]] = {
        names[0]: lambda: together(args.runs, args.steps),
        names[1]: lambda: one_after_another(args.runs, args.steps),
        bound: lambda: by_hand(args.runs, args.steps),
    }
    wall: dict[str, list[float]] = {name: [] for name in sides}
    processors: dict[str, list[float]] = {name: [] for name in sides}
    for index in range(1 + args.rounds):
        for name in sides if index % 2 else reversed(sides):
            passed = seconds(sides[name])
            if index:
                wall[name].append(passed[0])
                processors[name].append(passed[1])
    pairs = [names, (names[0], bound), (bound, names[1])]
    found = [
        replace(one := compared(told, *pair, smaller_is_better=True), name=f"{one.name}{what}")
        for told, what in ((wall, ""), (processors, ", time of processors"))
        for pair in pairs
    ]
    both = zip(together(args.runs, 200), one_after_another(args.runs, 200), strict=True)
    worst = max(
        float(np.max(np.abs(mine[name] - its[name])) / np.max(np.abs(its[name]))) for mine, its in both for name in its
    )
    note = f"largest difference of a weight after 200 steps, relative to the largest weight: {worst:.1e}"
    title = f"{args.runs} runs of a small network"
    write(args.json, report(title, found, steps=args.runs * args.steps, targets={names: 0.5}, notes=[note]))


if __name__ == "__main__":
    main()
