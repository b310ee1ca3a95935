"""The MLP of `mlp.py` with predictions and five metrics, trained for one step, for the inference benchmarks."""

from __future__ import annotations

import tempfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from mlp import BATCH, WIDTHS, initial_variables, logits_of

import estimator_core as ec


def values_of(labels: Any, logits: Any) -> dict[str, Any]:
    """Returns one value per example for each of the five metrics."""
    logs = jax.nn.log_softmax(logits)
    probabilities = jnp.exp(logs)
    own = jnp.take_along_axis(logits, labels[:, None], axis=1)
    one_hot = jax.nn.one_hot(labels, WIDTHS[-1])
    return {
        "accuracy": (jnp.argmax(logits, axis=1) == labels).astype(jnp.float32),
        "top_3": (jnp.sum(logits > own, axis=1) < 3).astype(jnp.float32),
        "brier": jnp.sum((probabilities - one_hot) ** 2, axis=1),
        "confidence": jnp.max(probabilities, axis=1),
        "entropy": -jnp.sum(probabilities * logs, axis=1),
    }


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """Defines the model in all modes."""
    variables = {name: ec.get_variable(name, value.shape) for name, value in initial_variables().items()}
    logits = logits_of(variables, features["x"])
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"logits": logits})
    metrics = {name: ec.metrics.mean(value) for name, value in values_of(labels, logits).items()}
    return ec.EstimatorSpec(
        mode,
        loss=loss_of(logits, labels),
        train_op=optax.adam(1e-3),
        predictions={"logits": logits},
        eval_metric_ops=metrics if mode == ec.ModeKeys.EVAL else None,
    )


def loss_of(logits: Any, labels: Any) -> Any:
    """Returns the mean cross entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def arrays(rows: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns features and labels."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, WIDTHS[0])).astype(np.float32)
    return {"x": x}, generator.integers(0, WIDTHS[-1], size=rows).astype(np.int32)


def trained(**config: Any) -> ec.Estimator:
    """Returns an Estimator after one step, without checkpoints."""
    settings: dict[str, Any] = {"save_checkpoints_steps": None, "save_checkpoints_secs": None, **config}
    estimator = ec.Estimator(
        model_fn,
        config=ec.RunConfig(model_dir=tempfile.mkdtemp(prefix="bench-model-"), tf_random_seed=1, **settings),
    )
    x, y = arrays(BATCH)
    estimator.train(ec.inputs.numpy_input_fn(x, y, batch_size=BATCH, shuffle=True), steps=1)
    return estimator
