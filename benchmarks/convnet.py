"""A convolutional network of the size of the digits: 8x8x1, two convolutions of 16 and 32 channels, batch 32, Adam.

uv run python benchmarks/convnet.py [--rounds 15] [--steps 400] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _side_by_side import compare, report

import estimator_core as ec

BATCH, ROWS = 32, 1792
SHAPES = {"conv_0": (3, 3, 1, 16), "conv_1": (3, 3, 16, 32), "dense_0": (512, 64), "dense_1": (64, 10)}


def logits_of(variables: dict[str, Any], x: Any) -> Any:
    """The network on plain arrays."""
    for name, stride in (("conv_0", 1), ("conv_1", 2)):
        kernel = variables[f"{name}/kernel"]
        x = jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + variables[f"{name}/bias"])
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ variables["dense_0/kernel"] + variables["dense_0/bias"])
    return x @ variables["dense_1/kernel"] + variables["dense_1/bias"]


def data() -> tuple[np.ndarray, np.ndarray]:
    """Images and labels."""
    generator = np.random.default_rng(0)
    images = generator.normal(size=(ROWS, 8, 8, 1)).astype(np.float32)
    return images, generator.integers(0, 10, size=ROWS).astype(np.int32)


def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Fresh batches: one permutation an epoch."""
    x, y = data()
    shuffler = np.random.default_rng(1)
    while True:
        order = shuffler.permutation(ROWS)
        for start in range(0, ROWS, BATCH):
            yield x[order[start : start + BATCH]], y[order[start : start + BATCH]]


def loss_of(logits: Any, labels: Any) -> Any:
    """Mean cross entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def hand_written(steps: int) -> Callable[[], None]:
    """Donated state, nothing read inside."""
    optimizer = optax.adam(1e-3)

    def step(variables: Any, slots: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda values: loss_of(logits_of(values, x), y))(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, loss

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def run() -> None:
        init = jax.nn.initializers.glorot_uniform()
        variables = {f"{name}/kernel": init(jax.random.key(0), shape) for name, shape in SHAPES.items()}
        variables |= {f"{name}/bias": jnp.zeros(shape[-1]) for name, shape in SHAPES.items()}
        slots = optimizer.init(variables)
        source = batches()
        for _ in range(steps):
            variables, slots, _ = compiled(variables, slots, *next(source))
        jax.block_until_ready(variables)

    return run


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """The same network as a model_fn."""
    variables = {f"{name}/kernel": ec.get_variable(f"{name}/kernel", shape) for name, shape in SHAPES.items()}
    variables |= {f"{name}/bias": ec.get_variable(f"{name}/bias", (shape[-1],)) for name, shape in SHAPES.items()}
    logits = logits_of(variables, features)
    return ec.EstimatorSpec(mode, loss=loss_of(logits, labels), train_op=optax.adam(1e-3), predictions=logits)


def estimator_loop(steps: int, **config: Any) -> Callable[[], None]:
    """The Estimator, warm: one object, one `train` call a round."""
    settings: dict[str, Any] = {"save_checkpoints_steps": None, "save_checkpoints_secs": None, **config}
    estimator = ec.Estimator(
        model_fn,
        config=ec.RunConfig(model_dir=tempfile.mkdtemp(prefix="bench-conv-"), tf_random_seed=1, **settings),
    )
    source = ec.inputs.from_iterable(batches, fresh_arrays=True, replay=False)

    def run() -> None:
        estimator.train(source, steps=steps)
        jax.block_until_ready(estimator._engine.live.state)  # pyright: ignore[reportPrivateUsage]

    return run


def keras_fit(steps: int) -> Callable[[], None]:
    """`Model.fit` over the arrays; as many steps."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras

    layers = keras.layers
    model: Any = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    epochs, rest = divmod(steps, ROWS // BATCH)
    assert rest == 0, f"--steps must be a multiple of {ROWS // BATCH}, the batches of an epoch"
    x, y = data()

    return lambda: model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=0)


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=448)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    contestants = {
        "bare loop": hand_written(args.steps),
        "estimator, default hooks": estimator_loop(args.steps),
        "estimator, auto": estimator_loop(args.steps, steps_per_dispatch="auto"),
        "Keras": keras_fit(args.steps),
    }
    pairs = [("estimator, auto", "estimator, default hooks"), ("estimator, default hooks", "Keras")]
    results = compare(contestants, reference="bare loop", rounds=args.rounds, pairs=pairs)
    report("Convolutional network of the size of the digits", results, steps=args.steps, output=args.json)


if __name__ == "__main__":
    main()
