"""A small regression model, its data, and estimators of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec

ROWS, FEATURES = 40, 3


def linear_model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """y = x w + b."""
    weights = ec.get_variable("w", (FEATURES,), jax.nn.initializers.normal(1.0))
    predictions = features["x"] @ weights + ec.get_variable("b", (), jax.nn.initializers.zeros)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": predictions})
    loss = jnp.mean((predictions - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adam(0.05))


def inputs(**changes: Any) -> Callable[..., Any]:
    """40 rows whose labels are linear in the features."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(ROWS, FEATURES)).astype(np.float32)
    y = (x @ np.array([1.0, -2.0, 0.5]) + 0.25).astype(np.float32)
    return ec.inputs.numpy_input_fn({"x": x}, y, **changes)


@pytest.fixture
def train_input() -> Callable[..., Any]:
    """Endless shuffled batches of 8."""
    return inputs(batch_size=8, num_epochs=None, shuffle=True, seed=5)


@pytest.fixture
def eval_input() -> Callable[..., Any]:
    """Returns one epoch in batches of 16, 16 and 8 rows."""
    return inputs(batch_size=16, num_epochs=1, shuffle=False)


@pytest.fixture
def make_estimator(tmp_path: Path) -> Callable[..., ec.Estimator]:
    """Makes estimators of the linear model, by default in one model_dir, without the hooks of plugins."""

    def make(*, model_dir: Path | None = None, **config: Any) -> ec.Estimator:
        settings = {
            "model_dir": str(model_dir or tmp_path / "model"),
            "tf_random_seed": 1,
            "save_checkpoints_steps": 10,
            "default_hooks": False,
            **config,
        }
        return ec.Estimator(linear_model_fn, config=ec.RunConfig(**settings))

    return make
