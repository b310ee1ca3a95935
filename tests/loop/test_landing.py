"""Tests of `land` and `training_batches`: runs whose steps other code makes."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.checkpoint import latest_checkpoint, read_checkpoint
from estimator_core.errors import HookError
from estimator_core.hooks import Hook
from estimator_core.inputs import InputPosition
from estimator_core.lowering import land, trace_step
from estimator_core.train_eval import training_batches

X = np.arange(64, dtype=np.float32)


def model_fn(features: Any, mode: str) -> ec.EstimatorSpec:
    loss = jnp.mean((features["x"] * ec.get_variable("slope", ()) - 1) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(1e-4, momentum=0.9))


def estimator(folder: Path) -> ec.Estimator:
    return ec.Estimator(model_fn, config=ec.RunConfig(str(folder), tf_random_seed=1, default_hooks=False))


def inputs() -> Any:
    return ec.inputs.numpy_input_fn({"x": X}, batch_size=8, num_epochs=None, shuffle=True, seed=3)


class Elsewhere(Hook):
    """Makes four steps outside the run and lands there."""

    def __init__(self, one: ec.Estimator, clock: int = 4) -> None:
        self.one, self.clock = one, clock

    def after_create(self, run: Any) -> None:
        batches = training_batches(self.one, inputs(), None)
        state, position = run.state, InputPosition("")
        for batch in [next(batches) for _ in range(4)]:
            traced = trace_step(self.one.model_fn, self.one.config, batch, jax.devices()[:1]).traced
            state, _ = _called(traced)(state, batch.features, batch.labels, batch.weights)
            position = batch.position
        clock = np.array(state.clock)
        clock[0] = self.clock
        land(run, state._replace(clock=clock), position)


def _called(traced: Any) -> Any:
    from jax.extend.core import jaxpr_as_fun

    run, out = jaxpr_as_fun(traced.jaxpr), jax.tree.structure(traced.out_info)
    return lambda *arguments: jax.tree.unflatten(out, run(*jax.tree.leaves(arguments)))


def test_a_run_goes_on_from_steps_made_elsewhere(tmp_path: Path) -> None:
    """Its checkpoint, the position of its input and all its numbers are those of a run that makes every step itself."""
    one = estimator(tmp_path / "landed")
    one.train(inputs(), hooks=[Elsewhere(one)], max_steps=4)
    found = read_checkpoint(str(latest_checkpoint(one.model_dir)))
    again = estimator(tmp_path / "landed").train(inputs(), max_steps=7)
    whole = estimator(tmp_path / "whole").train(inputs(), max_steps=4)
    expected = read_checkpoint(str(latest_checkpoint(whole.model_dir)))
    assert found.clock.tolist() == expected.clock.tolist()
    assert found.input == expected.input
    assert sorted(found.opt_state) == sorted(expected.opt_state)
    assert found.opt_state
    for name, value in expected.opt_state.items():
        np.testing.assert_allclose(found.opt_state[name], value, rtol=1e-6)
    whole.train(inputs(), max_steps=7)
    np.testing.assert_allclose(again.variables["slope"], whole.variables["slope"], rtol=1e-6)


def test_an_earlier_step_and_another_state_are_refused(tmp_path: Path) -> None:
    one = estimator(tmp_path)
    with pytest.raises(HookError, match="is at step 0; it cannot continue at step 0"):
        one.train(inputs(), hooks=[Elsewhere(one, clock=0)], max_steps=4)

    class Other(Hook):
        def after_create(self, run: Any) -> None:
            land(run, run.state._replace(variables={}), None)

    with pytest.raises(HookError, match="differs in its names or shapes"):
        one.train(inputs(), hooks=[Other()], max_steps=4)

    class Late(Hook):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            land(run, run.state, None)

    with pytest.raises(HookError, match="before its first step"):
        one.train(inputs(), hooks=[Late()], max_steps=4)
