"""A small model and its data, the same in every process of a test."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec

FEATURES, CLASSES, EXAMPLES = 16, 8, 192


def data(examples: int = EXAMPLES) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns points of classes that a small network can separate."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(examples, FEATURES)).astype(np.float32)
    y = np.argmax(x @ rng.normal(size=(FEATURES, CLASSES)), axis=1).astype(np.int32)
    return {"x": x}, y


def classifier(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
    """A model of two hidden layers with dropout, and statistics that are not trainable variables."""
    width = params["width"]
    hidden = features["x"]
    with ec.variable_scope("tower"):
        for layer in range(2):
            kernel = ec.get_variable(f"layer_{layer}/kernel", (hidden.shape[-1], width))
            bias = ec.get_variable(f"layer_{layer}/bias", (width,))
            hidden = jax.nn.relu(hidden @ kernel + bias)
    mean = ec.get_variable("mean", (width,), trainable=False)
    if mode == ec.ModeKeys.TRAIN:
        ec.set_variable("mean", 0.9 * mean + 0.1 * hidden.mean(axis=0))
    if mode == ec.ModeKeys.TRAIN and params.get("dropout"):
        keep = jax.random.bernoulli(ec.next_rng_key(), 0.9, hidden.shape)
        hidden = jnp.where(keep, hidden / 0.9, 0).astype(hidden.dtype)
    logits = (hidden @ ec.get_variable("logits/kernel", (width, CLASSES))).astype(jnp.float32)
    classes = jnp.argmax(logits, axis=-1)
    predictions = {"logits": logits, "class": classes}
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=predictions)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return ec.EstimatorSpec(
        mode,
        predictions=predictions,
        loss=losses.mean(),
        train_op=optax.adam(params.get("learning_rate", 1e-2)),
        eval_metric_ops={"accuracy": ec.metrics.accuracy(labels, classes), "per_example": ec.metrics.mean(losses)},
    )


def train_input(batch_size: int, epochs: int | None = None) -> Any:
    """Returns an input of shuffled batches that are distributed over the processes."""
    return ec.inputs.numpy_input_fn(*data(), batch_size=batch_size, num_epochs=epochs, shuffle=True, seed=3)


def eval_input(batch_size: int, examples: int = EXAMPLES) -> Any:
    """Returns an input with one pass in order. The last batch may be short."""
    return ec.inputs.numpy_input_fn(*data(examples), batch_size=batch_size, shuffle=False)
