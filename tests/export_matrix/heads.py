"""Cases of every head on a model of every library."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import flax.linen as linen
import jax
import jax.numpy as jnp
import keras
import numpy as np
import optax
from flax import nnx

import estimator_core as ec
import estimator_heads as eh
from tests.export_matrix.cases import ROWS, Case, Sample, config, in_turn, trained

WIDTH, HIDDEN, STEPS = 4, 8, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, WIDTH)).astype(np.float32)
KINDS = np.array(["red", "green", "blue"])


def function(x: jax.Array, units: int) -> jax.Array:
    """Uses variables of the model_fn itself."""
    normal = jax.nn.initializers.normal(0.5)
    hidden = jnp.tanh(x @ ec.get_variable("hidden/kernel", (WIDTH, HIDDEN), normal))
    return hidden @ ec.get_variable("output/kernel", (HIDDEN, units), normal)


class Nnx(nnx.Module):
    """A network of Flax NNX."""

    def __init__(self, units: int, rngs: nnx.Rngs) -> None:
        self.hidden, self.output = nnx.Linear(WIDTH, HIDDEN, rngs=rngs), nnx.Linear(HIDDEN, units, rngs=rngs)
        self.normalization, self.dropout = nnx.BatchNorm(HIDDEN, rngs=rngs), nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.output(self.dropout(nnx.relu(self.normalization(self.hidden(x)))))


class Linen(linen.Module):
    """A network of Flax Linen."""

    units: int

    @linen.compact
    def __call__(self, x: jax.Array, training: bool) -> jax.Array:
        x = linen.BatchNorm(use_running_average=not training)(linen.Dense(HIDDEN)(x))
        return linen.Dense(self.units)(linen.Dropout(0.2)(linen.relu(x), deterministic=not training))


class Equinox(eqx.Module):
    """A network of Equinox."""

    hidden: eqx.nn.Linear
    normalization: eqx.nn.LayerNorm
    output: eqx.nn.Linear

    def __init__(self, units: int, key: jax.Array) -> None:
        first, second = jax.random.split(key)
        self.hidden, self.output = eqx.nn.Linear(WIDTH, HIDDEN, key=first), eqx.nn.Linear(HIDDEN, units, key=second)
        self.normalization = eqx.nn.LayerNorm(HIDDEN)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.output(jax.nn.relu(self.normalization(self.hidden(x))))


def of_nnx(x: jax.Array, units: int, mode: str) -> jax.Array:
    return ec.module(lambda rngs: Nnx(units, rngs), name="network")(x)


def of_linen(x: jax.Array, units: int, mode: str) -> jax.Array:
    return ec.module(lambda: Linen(units), name="network")(x, mode == ec.ModeKeys.TRAIN)


def of_equinox(x: jax.Array, units: int, mode: str) -> jax.Array:
    return jax.vmap(ec.module(lambda key: Equinox(units, key), name="network"))(x)


def of_keras(x: jax.Array, units: int, mode: str) -> jax.Array:
    layers = keras.layers

    def network() -> Any:
        return keras.Sequential(
            [layers.Dense(HIDDEN, "relu"), layers.BatchNormalization(), layers.Dropout(0.2), layers.Dense(units)]
        )

    return ec.module(network, name="network")(x)


MODELS: dict[str, Callable[[Any, int, str], jax.Array]] = {
    "function": lambda x, units, mode: function(x, units),
    "nnx": of_nnx,
    "linen": of_linen,
    "equinox": of_equinox,
    "keras": of_keras,
}
MULTI = eh.MultiHead([eh.BinaryClassHead(name="click"), eh.RegressionHead(name="price")])
#: The head, the shape of the logits of one example, and the labels.
HEADS: dict[str, tuple[Any, tuple[int, ...], Any]] = {
    "BinaryClassHead": (eh.BinaryClassHead(), (1,), (X[:, :1] > 0).astype(np.int32)),
    "BinaryClassHead of names": (
        eh.BinaryClassHead(label_vocabulary=["no", "yes"]),
        (1,),
        np.where(X[:, :1] > 0, "yes", "no"),
    ),
    "MultiClassHead": (eh.MultiClassHead(3), (3,), RNG.integers(0, 3, (ROWS, 1)).astype(np.int32)),
    "MultiClassHead of names": (
        eh.MultiClassHead(3, label_vocabulary=list(KINDS)),
        (3,),
        KINDS[RNG.integers(0, 3, (ROWS, 1))],
    ),
    "MultiLabelHead": (eh.MultiLabelHead(3), (3,), RNG.integers(0, 2, (ROWS, 3)).astype(np.int32)),
    "RegressionHead": (eh.RegressionHead(2), (2,), X[:, :2]),
    "LogisticRegressionHead": (eh.LogisticRegressionHead(), (1,), np.abs(np.tanh(X[:, :1]))),
    "PoissonRegressionHead": (eh.PoissonRegressionHead(), (1,), RNG.integers(0, 4, (ROWS, 1)).astype(np.float32)),
    "MultiHead": (MULTI, (2,), {"click": (X[:, :1] > 0).astype(np.int32), "price": X[:, 1:2]}),
    "SequentialHeadWrapper": (
        eh.SequentialHeadWrapper(eh.MultiClassHead(3), "mask"),
        (STEPS, 3),
        RNG.integers(0, 3, (ROWS, STEPS, 1)).astype(np.int32),
    ),
    "TokenClassificationHead": (
        eh.TokenClassificationHead(3),
        (STEPS, 3),
        RNG.integers(0, 3, (ROWS, STEPS)).astype(np.int32),
    ),
    "RankingHead": (eh.RankingHead(STEPS), (STEPS,), RNG.integers(-1, 3, (ROWS, STEPS)).astype(np.int32)),
    "RetrievalHead": (eh.RetrievalHead(3), (6,), None),
}


def make(head_name: str, model_name: str) -> Sample:
    """Returns a trained head on a model."""
    head, shape, labels = HEADS[head_name]
    model = MODELS[model_name]

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        logits = model(features["x"], int(np.prod(shape)), mode)
        logits = logits.reshape(logits.shape[0], *shape)
        return head.create_estimator_spec(features, mode, logits, labels, optimizer=optax.sgd(0.1))

    features = {"x": X}
    if head_name == "SequentialHeadWrapper":
        features["mask"] = np.arange(STEPS) < RNG.integers(1, STEPS + 1, (ROWS, 1))
    estimator = ec.Estimator(model_fn, config=config(), label_transforms=head.label_transforms())
    return trained(estimator, features, labels)


#: Heads that are tested with every library. The other heads use logits in the same way, whatever their source.
WITH_EVERY_MODEL = ("BinaryClassHead of names", "MultiClassHead", "RegressionHead", "TokenClassificationHead")


def cases() -> list[Case]:
    """Returns every head on a function, and some heads on a model of every library."""
    chosen = [(head, model) for head in HEADS for model in MODELS if model == "function" or head in WITH_EVERY_MODEL]
    return [
        Case(group="heads", row=(head, model), make=functools.partial(make, head, model), cut=in_turn(place))
        for place, (head, model) in enumerate(chosen)
    ]
