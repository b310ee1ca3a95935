"""A small regression model, its data, and estimators of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec

ROWS, FEATURES = 40, 3


def linear_model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
    """y = x w + b; `params`: learning_rate, and `poison_after`: the step whose loss is NaN."""
    params = params or {}
    weights = ec.get_variable("w", (FEATURES,), jax.nn.initializers.normal(1.0))
    bias = ec.get_variable("b", (), jax.nn.initializers.zeros)
    predictions = features["x"] @ weights + bias
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": predictions, "twice": 2 * predictions})
    errors = predictions - labels
    loss = jnp.mean(errors**2)
    ec.summary.scalar("mean_error", jnp.mean(errors))
    ec.tensor("errors", errors)
    if mode == ec.ModeKeys.TRAIN and "poison_after" in params:
        seen = ec.get_variable("seen", (), jax.nn.initializers.zeros, trainable=False)
        ec.set_variable("seen", seen + 1)
        loss = jnp.where(seen + 1 >= params["poison_after"], jnp.nan, 1.0) * loss
    return ec.EstimatorSpec(
        mode,
        predictions={"y": predictions},
        loss=loss,
        train_op=params.get("train_op") or optax.adam(params.get("learning_rate", 0.05)),
        eval_metric_ops={"mean_prediction": ec.metrics.mean(predictions)},
    )


@pytest.fixture(scope="session")
def data() -> SimpleNamespace:
    """40 rows whose labels are linear in the features."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(ROWS, FEATURES)).astype(np.float32)
    return SimpleNamespace(x=x, y=(x @ np.array([1.0, -2.0, 0.5]) + 0.25).astype(np.float32))


@pytest.fixture
def train_input(data: SimpleNamespace) -> Callable[..., Any]:
    """Endless shuffled batches of 8."""
    return ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=8, num_epochs=None, shuffle=True, seed=5)


@pytest.fixture
def eval_input(data: SimpleNamespace) -> Callable[..., Any]:
    """One epoch in batches of 16: 16, 16 and 8 rows."""
    return ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=16, num_epochs=1, shuffle=False)


@pytest.fixture
def make_estimator(tmp_path: Path) -> Callable[..., ec.Estimator]:
    """Returns a function that makes estimators of the linear model, in one model_dir by default, without hooks of
    plugins.
    """

    def make(
        model_fn: Callable[..., Any] = linear_model_fn,
        *,
        params: Any = None,
        model_dir: Path | None = None,
        **config: Any,
    ) -> ec.Estimator:
        settings = {
            "model_dir": str(model_dir or tmp_path / "model"),
            "tf_random_seed": 1,
            "save_checkpoints_steps": 10,
            "default_hooks": False,
            **config,
        }
        return ec.Estimator(model_fn, config=ec.RunConfig(**settings), params={} if params is None else params)

    return make


class Recorder(ec.Hook):
    """Records every call and its step."""

    def __init__(self, name: str, log: list[Any], every: int = 1) -> None:
        self.label, self.log, self.every = name, log, every

    def begin(self, run: Any) -> None:
        self.log.append((self.label, "begin"))

    def after_create(self, run: Any) -> None:
        self.log.append((self.label, "after_create", run.step))

    def next_step(self, step: int) -> int | None:
        return (step // self.every + 1) * self.every

    def before_step(self, run: Any, step: int) -> None:
        self.log.append((self.label, "before_step", step))

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.log.append((self.label, "after_step", step))

    def end(self, run: Any) -> None:
        self.log.append((self.label, "end", run.step))


@pytest.fixture
def recorder() -> type[Recorder]:
    """The class of the recording hook."""
    return Recorder


def saved_steps(estimator: ec.Estimator) -> list[int]:
    """Returns the steps of the checkpoints of an estimator."""
    directory = Path(estimator.model_dir) / "checkpoints"
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit()) if directory.exists() else []


@pytest.fixture
def steps_saved() -> Callable[[ec.Estimator], list[int]]:
    """The function that lists the steps of the checkpoints of an estimator."""
    return saved_steps
