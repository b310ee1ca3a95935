"""The models whose exports are read in environments without this framework: `MODELS[name]() -> (model_fn, inputs)`.

`inputs(batch)` returns features. All models have outputs of several kinds, and none needs data.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import estimator_core as ec

TOKENS, VOCABULARY, WIDTH, HEADS = 16, 500, 64, 2


def raw_variables(features, labels, mode):
    """Variables with slashes and digits in their names, one of them not trainable."""
    hidden = jnp.tanh(features["x"] @ ec.get_variable("layer/0/kernel", (8, 16), jax.nn.initializers.normal(0.5)))
    offset = ec.get_variable("layer/0/offset", (16,), jax.nn.initializers.normal(0.5), trainable=False)
    logits = (hidden + offset) @ ec.get_variable("layer/1/kernel", (16, 3), jax.nn.initializers.normal(0.5))
    return spec(mode, {"logits": logits, "class_ids": jnp.argmax(logits, axis=-1)}, jnp.mean(logits**2))


class Convolutions(nnx.Module):
    """A small convolutional network with pooling, batch normalization and dropout."""

    def __init__(self, rngs):
        self.convolution = nnx.Conv(1, 4, (3, 3), rngs=rngs)
        self.normalization = nnx.BatchNorm(4, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.dense = nnx.Linear(4 * 4 * 4, 3, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.normalization(self.convolution(x)))
        x = nnx.max_pool(x, window_shape=(2, 2), strides=(2, 2))
        return self.dense(self.dropout(x.reshape(x.shape[0], 4 * 4 * 4)))


def flax(features, labels, mode):
    """A Flax network whose batch normalization has state."""
    logits = ec.module(Convolutions, name="network")(features["image"])
    return spec(mode, {"logits": logits, "probabilities": jax.nn.softmax(logits)}, jnp.mean(logits**2))


def multi_head(features, labels, mode):
    """A trunk with two heads, each with its own signature. One of them classifies."""
    trunk = nnx.relu(ec.module(lambda rngs: nnx.Linear(8, 16, rngs=rngs), name="trunk")(features["x"]))
    price = ec.module(lambda rngs: nnx.Linear(16, 1, rngs=rngs), name="price")(trunk)
    scores = jax.nn.softmax(ec.module(lambda rngs: nnx.Linear(16, 3, rngs=rngs), name="kind")(trunk))
    predictions = {"price": price, "scores": scores, "kind": jnp.argmax(scores, axis=-1)}
    outputs = {
        "serving_default": ec.export.PredictOutput(predictions),
        "price": ec.export.RegressionOutput(price),
        "kind": ec.export.ClassificationOutput(scores=scores),
    }
    return spec(mode, predictions, jnp.mean(price**2) + jnp.mean(scores**2))._replace(export_outputs=outputs)


class Block(nnx.Module):
    """One layer of BERT."""

    def __init__(self, rngs):
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
        self.first, self.second = nnx.LayerNorm(WIDTH, rngs=rngs), nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up, self.down = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs), nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x, mask):
        x = self.first(x + self.attention(x, mask=mask))
        return self.second(x + self.down(jax.nn.gelu(self.up(x), approximate=False)))


class Encoder(nnx.Module):
    """BERT's encoder and pooler."""

    def __init__(self, rngs):
        self.tokens = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.positions = nnx.Embed(TOKENS, WIDTH, rngs=rngs)
        self.blocks = nnx.List(Block(rngs) for _ in range(2))
        self.pooler = nnx.Linear(WIDTH, WIDTH, rngs=rngs)

    def __call__(self, ids, mask):
        x = self.tokens(ids) + self.positions(jnp.arange(TOKENS))
        for block in self.blocks:
            x = block(x, mask[:, None, None, :] > 0)
        return jnp.tanh(self.pooler(x[:, 0]))


def bert(features, labels, mode):
    """A classifier of BERT's architecture, with the exact GELU and a mask."""
    pooled = ec.module(Encoder, name="encoder")(features["input_ids"], features["input_mask"])
    logits = ec.module(lambda rngs: nnx.Linear(WIDTH, 2, rngs=rngs), name="classifier")(pooled)
    return spec(mode, {"logits": logits, "probabilities": jax.nn.softmax(logits)}, jnp.mean(logits**2))


def spec(mode, predictions, loss):
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=predictions)
    return ec.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=optax.adam(1e-2))


def vectors(batch):
    return {"x": np.random.default_rng(batch).normal(size=(batch, 8)).astype(np.float32)}


def images(batch):
    return {"image": np.random.default_rng(batch).normal(size=(batch, 8, 8, 1)).astype(np.float32)}


def texts(batch):
    generator = np.random.default_rng(batch)
    lengths = generator.integers(1, TOKENS + 1, size=(batch, 1))
    return {
        "input_ids": generator.integers(0, VOCABULARY, size=(batch, TOKENS), dtype=np.int32),
        "input_mask": (np.arange(TOKENS) < lengths).astype(np.int32),
    }


MODELS = {
    "raw_variables": (raw_variables, vectors),
    "flax": (flax, images),
    "multi_head": (multi_head, vectors),
    "bert": (bert, texts),
}
BATCHES = (1, 7, 64)
