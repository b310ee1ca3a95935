"""The two-tower model of `examples/two_tower.py`: two stacks 16-64-32 in Flax NNX, batch 128, Adam.

    uv run python benchmarks/two_tower.py [--rounds 15] [--steps 4096] [--json FILE]

Ours is the model_fn of the example with `BinaryClassHead`. The hand-written loop has the same network on plain arrays,
the loss of the head, and the same batches. Keras draws its own batches from the same arrays.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _batches import shuffled_rows
from _finished import Finished
from _report import report, write
from _side_by_side import compare
from flax import nnx

import estimator_core as ec
from estimator_heads import BinaryClassHead

WIDTHS, BATCH, ROWS = (16, 64, 32), 128, 8192


class Tower(nnx.Module):
    """A stack of dense layers whose output has length one."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List(nnx.Linear(a, b, rngs=rngs) for a, b in pairwise(WIDTHS))

    def __call__(self, x: Any) -> Any:
        for layer in self.layers[:-1]:
            x = nnx.relu(layer(x))
        x = self.layers[-1](x)
        return x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-6)


def clicks() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns users, items, and whether they clicked."""
    generator = np.random.default_rng(0)
    user, item = generator.normal(size=(2, ROWS, WIDTHS[0])).astype(np.float32)
    agreement = np.sum(user * item, axis=1) + generator.normal(size=ROWS)
    return {"user": user, "item": item}, (agreement > 0).astype(np.int32)[:, None]


def batches() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """Yields fresh batches of the clicks."""
    features, labels = clicks()
    for rows in shuffled_rows(ROWS, BATCH):
        yield {name: column[rows] for name, column in features.items()}, labels[rows]


def initial_variables() -> dict[str, Any]:
    """Returns kernels and biases of both towers, and the scale."""
    init = jax.nn.initializers.lecun_normal()
    variables: dict[str, Any] = {"scale": jnp.asarray(5.0)}
    for side, tower in enumerate(("user", "item")):
        for index, shape in enumerate(pairwise(WIDTHS)):
            variables[f"{tower}/{index}/kernel"] = init(jax.random.key(2 * side + index), shape)
            variables[f"{tower}/{index}/bias"] = jnp.zeros(shape[1])
    return variables


def hand_written(steps: int) -> Callable[[], None]:
    """Returns a loop with donated state that reads nothing."""
    optimizer = optax.adam(1e-3)

    def tower(variables: dict[str, Any], name: str, x: Any) -> Any:
        layers = len(WIDTHS) - 1
        for index in range(layers):
            x = x @ variables[f"{name}/{index}/kernel"] + variables[f"{name}/{index}/bias"]
            x = jax.nn.relu(x) if index < layers - 1 else x
        return x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-6)

    def loss_of(variables: dict[str, Any], features: Any, labels: Any) -> Any:
        user, item = (tower(variables, name, features[name]) for name in ("user", "item"))
        logits = variables["scale"] * jnp.sum(user * item, axis=-1, keepdims=True)
        return optax.sigmoid_binary_cross_entropy(logits, labels).mean()

    def step(variables: Any, slots: Any, features: Any, labels: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(variables, features, labels)
        updates, slots = optimizer.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, loss

    compiled, init = jax.jit(step, donate_argnums=(0, 1)), jax.jit(optimizer.init)

    def run() -> None:
        variables = initial_variables()
        slots, source = init(variables), batches()
        for _ in range(steps):
            variables, slots, _ = compiled(variables, slots, *next(source))
        jax.block_until_ready(variables)

    return run


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """Defines the model of the example."""
    user = ec.module(Tower, name="user_tower")(features["user"])
    item = ec.module(Tower, name="item_tower")(features["item"])
    scale = ec.get_variable("scale", (), nnx.initializers.constant(5.0))
    return BinaryClassHead().create_estimator_spec(
        features=features,
        mode=mode,
        logits=scale * jnp.sum(user * item, axis=-1, keepdims=True),
        labels=labels,
        optimizer=optax.adam(1e-3),
    )


def estimator_loop(steps: int, **config: Any) -> Callable[[], None]:
    """Returns a warm Estimator: one object, one `train` call per round."""
    settings: dict[str, Any] = {"save_checkpoints_steps": None, "save_checkpoints_secs": None, **config}
    directory = tempfile.mkdtemp(prefix="bench-two-tower-")
    estimator = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=directory, tf_random_seed=1, **settings))
    source = ec.inputs.from_iterable(batches, fresh_arrays=True, replay=False)

    def run() -> None:
        estimator.train(source, steps=steps, hooks=[Finished()])

    return run


def keras_fit(steps: int) -> Callable[[], None]:
    """Returns `Model.fit` over the arrays, with the same number of steps."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras

    layers = keras.layers

    def tower(x: Any) -> Any:
        for width in WIDTHS[1:-1]:
            x = layers.Dense(width, activation="relu")(x)
        return layers.UnitNormalization()(layers.Dense(WIDTHS[-1])(x))

    user, item = (keras.Input((WIDTHS[0],), name=name) for name in ("user", "item"))
    agreement = layers.Dot(axes=1)([tower(user), tower(item)])
    scale = layers.Dense(1, use_bias=False, kernel_initializer=keras.initializers.Constant(5.0))
    model: Any = keras.Model({"user": user, "item": item}, scale(agreement))
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True))
    epochs, rest = divmod(steps, ROWS // BATCH)
    assert rest == 0, f"--steps must be a multiple of {ROWS // BATCH}, the batches of an epoch"
    features, labels = clicks()
    return lambda: model.fit(features, labels, batch_size=BATCH, epochs=epochs, verbose=0)


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=4096)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    ours = "estimator, default hooks"
    contestants = {
        "bare loop": hand_written(args.steps),
        ours: estimator_loop(args.steps),
        "estimator, auto": estimator_loop(args.steps, steps_per_dispatch="auto"),
        "Keras": keras_fit(args.steps),
    }
    results = compare(contestants, reference="bare loop", rounds=args.rounds, pairs=[(ours, "Keras")])
    write(args.json, report(f"Two towers 16-64-32, batch {BATCH}, Adam", results, steps=args.steps))


if __name__ == "__main__":
    main()
