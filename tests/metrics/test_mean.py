"""Tests of mean and accuracy: values, weights, padding, shapes and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import estimator_core.metrics as metrics
from estimator_core.errors import ArgumentError


def test_mean_over_batches_of_different_sizes_is_the_mean_over_examples():
    merged = metrics.mean(np.array([1.0, 2.0, 3.0])).merge(metrics.mean(np.array([10.0])))
    assert merged.compute() == 4.0


def test_weighted_mean():
    assert metrics.mean(np.array([1.0, 5.0]), np.array([3.0, 1.0])).compute() == 2.0


@pytest.mark.parametrize("shape", [(), (2,), (2, 1), (2, 3)])
def test_weights_fit_by_leading_axes(shape):
    values = np.arange(6.0).reshape(2, 3)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, shape)
    full = np.broadcast_to(weights if len(shape) != 1 else weights[:, None], values.shape)
    assert metrics.mean(values, weights).compute() == pytest.approx(np.average(values, weights=full), rel=1e-6)


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ArgumentError, match=r"mean: weights of shape \(3,\) do not fit values of shape \(2, 3\)"):
        metrics.mean(np.zeros((2, 3)), np.ones(3))


def test_no_weight_at_all_gives_zero():
    assert metrics.mean(np.array([1.0]), np.array([0.0])).compute() == 0.0


def test_accuracy_counts_are_integers():
    metric = metrics.accuracy(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 0]))
    assert metric.total.dtype == jnp.uint32
    assert metric.compute() == 0.75


def test_accuracy_refuses_shapes_that_would_broadcast_into_pairs():
    with pytest.raises(ArgumentError, match="accuracy: labels of shape"):
        metrics.accuracy(np.zeros((1, 4)), np.zeros((4, 1)))


def test_accuracy_drops_one_trailing_axis():
    assert metrics.accuracy(np.array([[1], [2]]), np.array([1, 2])).compute() == 1.0


def test_padding_is_left_out_without_changing_the_structure():
    whole = metrics.mean(np.array([1.0, 2.0]))
    with metrics.applying_example_weights(jnp.array([1.0, 1.0, 0.0, 0.0])):
        padded = metrics.mean(np.array([1.0, 2.0, np.nan, 9.0]))
        padded_accuracy = metrics.accuracy(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    metrics.check_same_structure({"m": whole}, {"m": padded})
    assert padded.compute() == whole.compute() == 1.5
    assert padded_accuracy.compute() == 0.5


def test_padding_and_user_weights_multiply():
    with metrics.applying_example_weights(jnp.array([1.0, 1.0, 0.0])):
        metric = metrics.mean(np.array([1.0, 4.0, 100.0]), np.array([1.0, 2.0, 5.0]))
    assert metric.compute() == 3.0


def test_flattened_values_of_a_padded_batch_are_refused():
    mask = jnp.ones(3)
    with metrics.applying_example_weights(mask), pytest.raises(ArgumentError, match="padded to 3 rows"):
        metrics.mean(np.zeros(6))


def test_mean_merges_inside_jit_with_two_leaves():
    metric = metrics.mean(np.array([1.0, 2.0]))
    assert len(jax.tree.leaves(metric)) == 2
    merged = jax.jit(lambda a, b: a.merge(b))(metric, metric)
    assert merged.compute() == 1.5
