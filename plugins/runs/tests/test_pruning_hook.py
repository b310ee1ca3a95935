"""Tests of a custom objective that Optuna prunes at evaluations."""

import types

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.summaries import read_eval_metrics
from estimator_runs import PruningHook

X = np.linspace(-1, 1, 32, dtype=np.float32)


class Trial:
    """A trial that is pruned at a step."""

    def __init__(self, last):
        self.reported, self._last = [], last

    def report(self, value, step):
        self.reported.append((step, value))

    def should_prune(self):
        return self.reported[-1][0] >= self._last


def model_fn(features, labels, mode):
    loss = jnp.mean((features["x"] * ec.get_variable("slope", ()) - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))


def trained(folder, trial):
    inputs = ec.inputs.numpy_input_fn({"x": X}, 3 * X, batch_size=8, num_epochs=None, shuffle=False)
    held_out = ec.inputs.numpy_input_fn({"x": X}, 3 * X, batch_size=32, num_epochs=1, shuffle=False)
    estimator = ec.Estimator(model_fn, config=ec.RunConfig(str(folder), tf_random_seed=1, default_hooks=False))
    hook = PruningHook(trial, "loss", every_steps=2)
    evaluation = ec.EvalSpec(held_out, steps=None, every_steps=4)
    ec.train_and_evaluate(estimator, ec.TrainSpec(inputs, max_steps=12, hooks=[hook]), evaluation)
    return estimator, hook


def test_the_training_ends_where_the_trial_is_pruned(tmp_path):
    trial = Trial(last=8)
    estimator, hook = trained(tmp_path, trial)
    steps = [step for step, _ in trial.reported]
    assert hook.pruned
    assert steps == [4, 8]
    assert estimator.stop_reason == "Optuna prunes the trial"
    kept = read_eval_metrics(estimator.eval_dir())
    assert [(step, kept[step]["loss"]) for step in steps] == trial.reported


def run_of(rows):
    return types.SimpleNamespace(estimator=types.SimpleNamespace(history=types.SimpleNamespace(evaluations=rows)))


def test_evaluations_of_earlier_calls_and_of_other_names_are_left_out():
    trial, rows = Trial(last=1_000), [{"name": None, "global_step": 4, "loss": 3.0}]
    hook, run = PruningHook(trial, "loss", every_steps=4), run_of(rows)
    hook.after_create(run)
    rows += [{"name": name, "global_step": 8, "loss": loss} for name, loss in (("other", 1.0), (None, 2.0))]
    for step in (8, 12):
        hook.after_step(run, step, {})
    assert (trial.reported, hook.pruned, hook.next_step(8), hook.next_step(9)) == ([(8, 2.0)], False, 12, 12)


def test_refused_with_what_there_is():
    with pytest.raises(
        ArgumentError, match=r"^PruningHook: every_steps must be at least 1, and a whole number, given: 0"
    ):
        PruningHook(Trial(0), "loss", every_steps=0)
    rows = []
    hook = PruningHook(Trial(0), "los", every_steps=1)
    hook.after_create(run_of(rows))
    rows.append({"name": None, "global_step": 8, "loss": 1.0})
    with pytest.raises(ArgumentError, match=r"no metric 'los'. It has \['loss'\]"):
        hook.after_step(run_of(rows), 8, {})
