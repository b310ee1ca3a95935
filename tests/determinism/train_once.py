"""Trains a small network once and prints its bits: `python train_once.py MODEL_DIR STEPS_PER_DISPATCH`.

It uses every random part: initial values, dropout, the order of examples, and a noisy input with a seed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """A model of two layers with dropout between them."""
    init = jax.nn.initializers.glorot_uniform()
    hidden = jax.nn.relu(features["x"] @ ec.get_variable("one", (16, 64), init))
    if mode == ec.ModeKeys.TRAIN:
        hidden = hidden * jax.random.bernoulli(ec.next_rng_key("dropout"), 0.8, hidden.shape) / 0.8
    logits = hidden @ ec.get_variable("two", (64, 5), init)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"logits": logits})
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    metrics = {"accuracy": ec.metrics.accuracy(labels, jnp.argmax(logits, axis=-1))}
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adamw(1e-2), eval_metric_ops=metrics)


def main(model_dir: str, steps_per_dispatch: str) -> None:
    """Trains, evaluates and predicts, and prints the digest of each result."""
    generator = np.random.default_rng(3)
    x, y = generator.normal(size=(300, 16)).astype(np.float32), generator.integers(0, 5, 300).astype(np.int32)
    config = ec.RunConfig(
        model_dir=model_dir,
        tf_random_seed=11,
        steps_per_dispatch="auto" if steps_per_dispatch == "auto" else int(steps_per_dispatch),
    )
    estimator = ec.Estimator(model_fn, config=config)
    train_input = ec.inputs.numpy_input_fn({"x": x}, y, batch_size=32, num_epochs=None, shuffle=True, seed=5)
    once = ec.inputs.numpy_input_fn({"x": x}, y, batch_size=50, num_epochs=1, shuffle=False)
    estimator.train(train_input, max_steps=60)
    found = {name: value.tobytes() for name, value in estimator.variables.items()}
    found |= {f"eval {name}": np.asarray(value).tobytes() for name, value in estimator.evaluate(once).items()}
    found["predictions"] = b"".join(row["logits"].tobytes() for row in estimator.predict(once))
    print(json.dumps({name: hashlib.sha256(value).hexdigest() for name, value in found.items()}, sort_keys=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
