"""Tests of programs with early stopping that run again after they have ended."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.checkpoint import load_variables


def _model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    weight = ec.get_variable("weight", (), lambda key, shape, dtype: jnp.zeros(shape, dtype))
    loss = jnp.mean((weight * features["x"] - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.9))


def _rows() -> Any:
    x = np.linspace(0.5, 1.5, 16, dtype=np.float32)
    return ec.inputs.numpy_input_fn({"x": x}, 3 * x, batch_size=4, num_epochs=None, shuffle=True, seed=3)


def _program(folder: Path, restore_best: bool) -> tuple[int, Any]:
    """Trains until the loss has not fallen for 4 steps, and returns the last step with the weights."""
    estimator = ec.Estimator(_model_fn, model_dir=str(folder), config=ec.RunConfig(save_checkpoints_steps=2))
    stop = eh.stop_if_no_decrease_hook(estimator, "loss", 4, run_every_steps=1, restore_best=restore_best)
    held_out = ec.EvalSpec(_rows(), steps=4)
    ec.train_and_evaluate(estimator, ec.TrainSpec(_rows(), max_steps=200, hooks=[stop]), held_out)
    assert str(estimator.stop_reason).startswith("early stopping: no lower loss")
    newest = str(estimator.latest_checkpoint())
    return int(Path(newest).name), load_variables(newest)["weight"]


@pytest.mark.parametrize("restore_best", [False, True])
def test_a_program_that_has_ended_early_trains_no_further_step(tmp_path: Path, restore_best: bool):
    step, weight = _program(tmp_path, restore_best)
    assert 4 < step < 200
    for _ in range(2):
        assert _program(tmp_path, restore_best) == (step, weight)
