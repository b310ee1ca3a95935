"""A model small enough to train in a test, with summaries, a schedule and two inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec

_random = np.random.default_rng(0)
X = _random.normal(size=(256, 6)).astype(np.float32)
Y = (X @ _random.normal(size=(6, 3))).argmax(-1).astype(np.int32)


def optimizer() -> Any:
    schedule = optax.linear_schedule(0.05, 0.001, 200)
    return optax.inject_hyperparams(optax.sgd)(learning_rate=schedule)


def make_model_fn(tx: Any = None) -> Any:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        logits = features["x"] @ ec.get_variable("dense/kernel", (6, 3)) + ec.get_variable("dense/bias", (3,))
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"logits": logits})
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        correct = logits.argmax(-1) == labels
        ec.summary.scalar("batch_accuracy", correct.mean())
        ec.summary.histogram("logits", logits)
        ec.tensor("first_logit", logits[0, 0])
        return ec.EstimatorSpec(
            mode,
            loss=loss,
            train_op=optimizer() if tx is None else tx,
            eval_metric_ops={"accuracy": ec.metrics.accuracy(labels, jnp.argmax(logits, -1))},
        )

    return model_fn


def train_input_fn(examples: int = 256) -> Any:
    rows = slice(0, examples)
    return ec.inputs.numpy_input_fn({"x": X[rows]}, Y[rows], batch_size=16, num_epochs=None, shuffle=True, seed=3)


def eval_input_fn() -> Any:
    return ec.inputs.numpy_input_fn({"x": X}, Y, batch_size=64, num_epochs=1, shuffle=False)


def make_estimator(model_dir: Path, tx: Any = None, **config: Any) -> ec.Estimator:
    settings: dict[str, Any] = {"save_checkpoints_steps": 20, "tf_random_seed": 1, "prefetch": 0, **config}
    return ec.Estimator(make_model_fn(tx), config=ec.RunConfig(model_dir=str(model_dir), **settings))
