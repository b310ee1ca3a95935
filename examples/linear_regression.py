"""The smallest custom model: two variables, no neural-network library.

uv run python examples/linear_regression.py
"""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec


def model_fn(features, labels, mode, params):
    """Defines a straight line."""
    slope = ec.get_variable("slope", (), jax.nn.initializers.zeros)
    offset = ec.get_variable("offset", (), jax.nn.initializers.zeros)
    y = slope * features["x"] + offset
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    loss = jnp.mean((y - labels) ** 2)
    return ec.EstimatorSpec(
        mode,
        loss=loss,
        train_op=optax.sgd(params["learning_rate"]),
        eval_metric_ops={"absolute_error": ec.metrics.mean(jnp.abs(y - labels))},
    )


def run(model_dir):
    """Trains on a noisy line. Returns the metrics and the two variables."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, size=256).astype(np.float32)
    y = (3 * x + 1 + generator.normal(scale=0.1, size=256)).astype(np.float32)
    estimator = ec.Estimator(model_fn, model_dir=model_dir, params={"learning_rate": 0.3})
    estimator.train(
        ec.inputs.numpy_input_fn({"x": x}, y, batch_size=32, num_epochs=None, shuffle=True, seed=0), max_steps=100
    )
    metrics = estimator.evaluate(ec.inputs.numpy_input_fn({"x": x}, y, batch_size=32, num_epochs=1, shuffle=False))
    return metrics, estimator.variables


if __name__ == "__main__":
    results, variables = run(tempfile.mkdtemp())
    print(results, {name: float(value) for name, value in variables.items()})
