"""Convolutional networks: the digits' (8x8x1, batch 32) and MNIST's size (28x28x1, batch 128), Adam.

    uv run python benchmarks/convnet.py [--network digits|mnist] [--rounds 15] [--steps 448] [--torch-python PYTHON]
        [--json FILE]

Two convolutions (the second with a stride of 2), a dense layer and the logits. The loop in Flax follows the MNIST
example of Flax: `nnx.jit` over a model and an optimizer, without donation.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _batches import shuffled_rows
from _finished import Finished
from _peers import torch_peers
from _report import report, write
from _side_by_side import compare

import estimator_core as ec


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network and its data.

    Attributes:
        title: the title in the table.
        side: the side of an image in pixels.
        channels: the channels of the two convolutions.
        hidden: the units of the dense layer.
        batch: the examples per step.
        rows: the total number of examples.
    """

    title: str
    side: int
    channels: tuple[int, int]
    hidden: int
    batch: int
    rows: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the kernels."""
        one, two = self.channels
        flat = (self.side // 2) ** 2 * two
        return {
            "conv_0": (3, 3, 1, one),
            "conv_1": (3, 3, one, two),
            "dense_0": (flat, self.hidden),
            "dense_1": (self.hidden, 10),
        }


NETWORKS = {
    "digits": Network(
        title="Convolutional network of the size of the digits",
        side=8,
        channels=(16, 32),
        hidden=64,
        batch=32,
        rows=1792,
    ),
    "mnist": Network(
        title="Convolutional network of MNIST's size", side=28, channels=(16, 32), hidden=64, batch=128, rows=7168
    ),
}


TARGETS = {
    ("estimator, default hooks", "bare loop"): 0.99,
    ("estimator, auto", "bare loop"): 0.99,
    ("estimator, auto", "estimator, default hooks"): 1.0,
}


def logits_of(variables: dict[str, Any], x: Any) -> Any:
    """Returns the logits of the network on plain arrays."""
    for name, stride in (("conv_0", 1), ("conv_1", 2)):
        kernel = variables[f"{name}/kernel"]
        x = jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + variables[f"{name}/bias"])
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ variables["dense_0/kernel"] + variables["dense_0/bias"])
    return x @ variables["dense_1/kernel"] + variables["dense_1/bias"]


def data(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """Returns images and labels."""
    generator = np.random.default_rng(0)
    images = generator.normal(size=(network.rows, network.side, network.side, 1)).astype(np.float32)
    return images, generator.integers(0, 10, size=network.rows).astype(np.int32)


def batches(network: Network) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields fresh batches of its data."""
    x, y = data(network)
    for rows in shuffled_rows(network.rows, network.batch):
        yield x[rows], y[rows]


def loss_of(logits: Any, labels: Any) -> Any:
    """Returns the mean cross entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def hand_written(network: Network, steps: int) -> Callable[[], None]:
    """Returns a loop with donated state that reads nothing."""
    optimizer = optax.adam(1e-3)

    def step(variables: Any, slots: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda values: loss_of(logits_of(values, x), y))(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, loss

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def run() -> None:
        init = jax.nn.initializers.glorot_uniform()
        variables = {f"{name}/kernel": init(jax.random.key(0), shape) for name, shape in network.shapes.items()}
        variables |= {f"{name}/bias": jnp.zeros(shape[-1]) for name, shape in network.shapes.items()}
        slots = optimizer.init(variables)
        source = batches(network)
        for _ in range(steps):
            variables, slots, _ = compiled(variables, slots, *next(source))
        jax.block_until_ready(variables)

    return run


def model_of(network: Network) -> Callable[..., ec.EstimatorSpec]:
    """Returns the same network as a model_fn."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        shapes = network.shapes
        variables = {f"{name}/kernel": ec.get_variable(f"{name}/kernel", shape) for name, shape in shapes.items()}
        variables |= {f"{name}/bias": ec.get_variable(f"{name}/bias", (shape[-1],)) for name, shape in shapes.items()}
        logits = logits_of(variables, features)
        return ec.EstimatorSpec(mode, loss=loss_of(logits, labels), train_op=optax.adam(1e-3), predictions=logits)

    return model_fn


def estimator_loop(network: Network, steps: int, **config: Any) -> Callable[[], None]:
    """Returns a warm Estimator: one object, one `train` call per round."""
    settings: dict[str, Any] = {"save_checkpoints_steps": None, "save_checkpoints_secs": None, **config}
    estimator = ec.Estimator(
        model_of(network),
        config=ec.RunConfig(model_dir=tempfile.mkdtemp(prefix="bench-conv-"), tf_random_seed=1, **settings),
    )
    source = ec.inputs.from_iterable(lambda: batches(network), fresh_arrays=True, replay=False)

    def run() -> None:
        estimator.train(source, steps=steps, hooks=[Finished()])

    return run


def keras_fit(network: Network, steps: int) -> Callable[[], None]:
    """Returns `Model.fit` over the arrays, with the same number of steps."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras

    layers = keras.layers
    model: Any = keras.Sequential(
        [
            keras.Input((network.side, network.side, 1)),
            layers.Conv2D(network.channels[0], 3, padding="same", activation="relu"),
            layers.Conv2D(network.channels[1], 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(network.hidden, activation="relu"),
            layers.Dense(10),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    epoch = network.rows // network.batch
    epochs, rest = divmod(steps, epoch)
    assert rest == 0, f"--steps must be a multiple of {epoch}, the batches of an epoch"
    x, y = data(network)

    return lambda: model.fit(x, y, batch_size=network.batch, epochs=epochs, verbose=0)


def flax_loop(network: Network, steps: int) -> Callable[[], None]:
    """Returns the network in Flax NNX, with a loop over its batches."""
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            one, two = network.channels
            self.first = nnx.Conv(1, one, (3, 3), rngs=rngs)
            self.second = nnx.Conv(one, two, (3, 3), strides=2, rngs=rngs)
            self.hidden = nnx.Linear(network.shapes["dense_0"][0], network.hidden, rngs=rngs)
            self.logits = nnx.Linear(network.hidden, 10, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            x = nnx.relu(self.second(nnx.relu(self.first(x))))
            return self.logits(nnx.relu(self.hidden(x.reshape(x.shape[0], -1))))

    @nnx.jit
    def train_step(model: Model, optimizer: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        loss, gradients = nnx.value_and_grad(lambda model: loss_of(model(x), y))(model)
        optimizer.update(model, gradients)
        return loss

    def run() -> None:
        model = Model(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
        source = batches(network)
        for _ in range(steps):
            train_step(model, optimizer, *next(source))
        jax.block_until_ready(nnx.state(model, nnx.Param))

    return run


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=list(NETWORKS), default="digits")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=448)
    parser.add_argument("--torch-python", help="an interpreter with torch and lightning")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    network = NETWORKS[args.network]
    contestants = {
        "bare loop": hand_written(network, args.steps),
        "estimator, default hooks": estimator_loop(network, args.steps),
        "estimator, auto": estimator_loop(network, args.steps, steps_per_dispatch="auto"),
        "Keras": keras_fit(network, args.steps),
        "loop in Flax": flax_loop(network, args.steps),
        **torch_peers(args.torch_python, args.network, args.steps),
    }
    pairs = [("estimator, auto", "estimator, default hooks")]
    pairs += [("estimator, default hooks", peer) for peer in ("Keras", "loop in Flax", "PyTorch", "Lightning")]
    results = compare(contestants, reference="bare loop", rounds=args.rounds, pairs=pairs)
    write(args.json, report(network.title, results, steps=args.steps, targets=TARGETS))


if __name__ == "__main__":
    main()
