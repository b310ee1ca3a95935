"""Tests against tf.compat.v1.metrics, tf_metrics and Keras where this package once differed.

The values were recorded with TensorFlow 2.15.1.
"""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core.errors import ArgumentError
from estimator_heads import adagrad, metrics

POINTS = json.loads(Path(__file__).with_name("recorded_operating_points.json").read_text())


@pytest.mark.parametrize("name", ["sensitivity_at_specificity", "specificity_at_sensitivity"])
def test_the_nearest_operating_point_is_that_of_tensorflow_1(name: str) -> None:
    metric = getattr(metrics, name)
    differing = 0
    for row in POINTS:
        labels, scores = np.array(row["labels"]), np.array(row["scores"], np.float32)
        nearest = metric(labels, scores, row["bound"], choose="nearest").compute()
        assert nearest == pytest.approx(row[name], abs=1e-5)
        differing += nearest != metric(labels, scores, row["bound"]).compute()
    assert differing or name == "sensitivity_at_specificity"


def test_another_choice_of_an_operating_point_is_refused() -> None:
    with pytest.raises(ArgumentError, match='choose must be "best" or "nearest"'):
        metrics.sensitivity_at_specificity(np.array([1, 0]), np.array([0.5, 0.5]), 0.5, choose="last")


@pytest.mark.parametrize("metric", [metrics.class_precision, metrics.class_recall, metrics.f_beta])
def test_positional_indices_of_tf_metrics_are_refused_by_name(metric) -> None:
    labels, predictions = np.array([0, 1, 2, 1]), np.array([0, 1, 1, 1])
    with pytest.raises(ArgumentError, match=r"use indices=\[1\]"):
        metric(labels, predictions, 3, [1])
    assert metric(labels, predictions, 3, [1, 1, 1, 1]).compute() == metric(labels, predictions, 3).compute()


def test_recall_at_k_takes_class_ids() -> None:
    scores = np.array([[0.9, 0.5, 0.1], [0.1, 0.2, 0.7]], np.float32)
    assert metrics.recall_at_k(np.array([1, 0]), scores, k=2).compute() == 0.5
    assert metrics.recall_at_k(np.array([[0, 2], [2, 2]]), scores, k=1).compute() == 0.75
    assert metrics.recall_at_k(np.array([[1, 0, 1], [0, 0, 1]]), scores, k=1).compute() == 0.75
    assert metrics.recall_at_k(np.array([[0, 3], [2, -1]]), scores, k=1).compute() == 0.5


def test_accuracy_with_an_infinite_weight_is_no_number() -> None:
    for labels in ([0, 1], [1, 1]):
        assert np.isnan(metrics.accuracy(np.array(labels), np.array([1, 1]), np.array([np.inf, 1.0])).compute())


def test_adagrad_from_an_accumulator_of_0() -> None:
    """The step in TensorFlow is w - rate * g / (sqrt(total) + epsilon), for gradients of any size."""
    rate, epsilon = 0.1, 1e-7
    gradients = np.array([1.0, 1e-4, 1e-7, 0.0])
    optimizer = adagrad(rate, initial_accumulator_value=0.0)
    weights = jnp.ones(4)
    state, total, expected = optimizer.init(weights), np.zeros(4), np.ones(4)
    for _ in range(3):
        updates, state = optimizer.update(jnp.asarray(gradients, jnp.float32), state, weights)
        weights = weights + updates
        total += gradients**2
        expected -= rate * gradients / (np.sqrt(total) + epsilon)
    np.testing.assert_allclose(np.asarray(weights), expected, rtol=1e-6)
