"""Ftrl and Adagrad take the steps that the optimizers of tf.estimator took."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_heads import adagrad, ftrl
from plugins.heads.tests import head_recordings

CASES = head_recordings.load("optimizers")


def steps(optimizer, start, gradients):
    update = jax.jit(optimizer.update)
    weights = np.asarray(start, np.float32)
    state = optimizer.init(weights)
    for gradient in gradients:
        change, state = update(np.asarray(gradient, np.float32), state, weights)
        weights = optax.apply_updates(weights, change)
        yield np.asarray(weights)


@pytest.mark.parametrize("name", CASES)
def test_recorded_steps(name):
    case = CASES[name]
    optimizer = {"Ftrl": ftrl, "Adagrad": adagrad}[case["optimizer"]](**case["arguments"])
    values = list(steps(optimizer, case["start"], case["gradients"]))
    np.testing.assert_allclose(values, case["values"], rtol=1e-5, atol=1e-6)


def test_optax_adagrad_is_the_adagrad_of_the_original():
    case = CASES["33_adagrad_0.05"]
    values = list(steps(optax.adagrad(0.05), case["start"], case["gradients"]))
    np.testing.assert_allclose(values, case["values"], rtol=1e-5)


def test_ftrl_takes_trees_and_schedules():
    optimizer = ftrl(optax.piecewise_constant_schedule(0.2, {1: 0.5}))
    weights = {"a": np.zeros(2, np.float32), "b": {"c": np.ones((1, 3), np.float32)}}
    state = optimizer.init(weights)
    gradients = jax.tree.map(np.ones_like, weights)
    first, state = optimizer.update(gradients, state, weights)
    second, state = optimizer.update(gradients, state, optax.apply_updates(weights, first))
    constant = ftrl(0.2)
    expected, _ = constant.update(gradients, constant.init(weights), weights)
    jax.tree.map(np.testing.assert_allclose, first, expected)
    assert jax.tree.structure(second) == jax.tree.structure(weights)
    assert int(state.step) == 2


@pytest.mark.parametrize(
    "options",
    [{"initial_accumulator_value": -1.0}, {"l1_regularization_strength": -1.0}, {"learning_rate_power": 0.5}],
)
def test_ftrl_refuses_values_outside_their_range(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        ftrl(0.1, **options)


def test_ftrl_needs_the_parameters():
    optimizer = ftrl(0.1)
    with pytest.raises(ArgumentError, match="parameters"):
        optimizer.update(np.ones(2), optimizer.init(np.ones(2)))


def test_ftrl_moves_only_a_table():
    """Without another variable, its `update` once raised "Too few leaves for PyTreeDef"."""

    def model_fn(features, labels, mode):
        wide = ec.sparse_lookup("wide/job", features, (4, 1), jax.nn.initializers.ones)
        deep = ec.get_variable("deep/bias", (1,), jax.nn.initializers.zeros)
        loss = jnp.mean((wide + deep - labels) ** 2)
        members = ec.minimize(loss, ftrl(0.2), "wide/.*"), ec.minimize(loss, optax.sgd(0.1), "deep/.*")
        return ec.EstimatorSpec(mode, loss=loss, train_op=ec.group(*members))

    ids, labels = np.array([1, 1, 3]), np.zeros((3, 1), np.float32)
    estimator = ec.Estimator(model_fn).train(lambda: [(ids, labels)], steps=1)
    gradients = np.array([[0.0], [4 / 3], [0.0], [2 / 3]], np.float32)
    *_, expected = steps(ftrl(0.2), np.ones((4, 1)), [gradients])
    np.testing.assert_allclose(estimator.get_variable_value("wide/job")[[1, 3]], expected[[1, 3]], rtol=1e-6)
    np.testing.assert_allclose(estimator.get_variable_value("wide/job")[[0, 2]], 1.0)
