"""Tests of the metrics of numbers and vectors against scikit-learn, on random and on difficult data."""

import math

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.metrics.pairwise import paired_cosine_distances

from estimator_core.errors import EstimatorError
from estimator_heads import MultiClassHead, MultiLabelHead, metrics
from plugins.heads.tests.streaming import streamed

rng = np.random.default_rng(13)
N = 150
SIZES = (64, 22)


def data(kind):
    labels = rng.normal(size=N)
    if kind == "large mean":
        labels += 1000.0
    elif kind == "wide":
        labels = rng.lognormal(0, 6, N)
    predicted = labels + rng.normal(0, 0.5, N)
    weights = rng.uniform(0.1, 3.0, N)
    if kind == "zero weights":
        weights[rng.random(N) < 0.5] = 0.0
    return labels.astype(np.float32), predicted.astype(np.float32), weights.astype(np.float32)


KINDS = ["random", "large mean", "wide", "zero weights"]


@pytest.mark.parametrize("kind", KINDS)
def test_errors(kind):
    labels, predicted, weights = data(kind)
    y, p, w = (column.astype(float) for column in (labels, predicted, weights))
    for ours, theirs in [
        (metrics.mean_squared_error, sk.mean_squared_error),
        (metrics.root_mean_squared_error, sk.root_mean_squared_error),
        (metrics.mean_absolute_error, sk.mean_absolute_error),
        (metrics.r_squared, sk.r2_score),
    ]:
        value = streamed(ours, labels, predicted, sizes=SIZES, weights=weights)
        assert value == pytest.approx(theirs(y, p, sample_weight=w), rel=1e-6)
        assert streamed(ours, labels, predicted, sizes=SIZES) == pytest.approx(theirs(y, p), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_pearson(kind):
    labels, predicted, weights = data(kind)
    value = streamed(metrics.pearson_correlation, labels, predicted, sizes=SIZES, weights=weights)
    covariance = np.cov(labels.astype(float), predicted.astype(float), aweights=weights.astype(float))
    assert value == pytest.approx(covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]), rel=1e-6)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e7, -3e9])
def test_spread_is_seen_at_any_offset(offset):
    """float32 has only a few bits left for the spread. The metric must not lose them."""
    spread = max(1.0, abs(offset) * 3e-7)
    labels = (offset + spread * rng.normal(size=N)).astype(np.float32)
    predicted = (labels + 0.2 * spread * rng.normal(size=N)).astype(np.float32)
    weights = rng.uniform(0.1, 3.0, N).astype(np.float32)
    y, p, w = labels.astype(float) - offset, predicted.astype(float) - offset, weights.astype(float)
    value = streamed(metrics.r_squared, labels, predicted, sizes=SIZES, weights=weights)
    assert value == pytest.approx(sk.r2_score(y, p, sample_weight=w), rel=1e-6)
    value = streamed(metrics.pearson_correlation, labels, predicted, sizes=SIZES, weights=weights)
    covariance = np.cov(y, p, aweights=w)
    assert value == pytest.approx(covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]), rel=1e-6)


@pytest.mark.slow
def test_constant_columns():
    constant, varied = np.full(10, 0.1, np.float32), np.arange(10.0)
    assert metrics.r_squared(constant, constant).compute() == 1.0
    assert metrics.r_squared(constant, varied).compute() == 0.0
    assert math.isnan(metrics.pearson_correlation(constant, varied).compute())
    weights = rng.uniform(0.1, 3.0, 10).astype(np.float32)
    assert metrics.r_squared(constant, varied, weights).compute() == 0.0
    assert math.isnan(metrics.pearson_correlation(varied, constant, weights).compute())
    assert metrics.r_squared(np.zeros(0), np.zeros(0)).compute() == 0.0
    assert math.isnan(metrics.r_squared(np.array([1.0, np.inf]), np.ones(2)).compute())
    assert math.isnan(metrics.pearson_correlation(np.array([1.0, np.inf]), np.ones(2)).compute())


def test_one_example():
    assert metrics.mean_squared_error(np.array([3.0]), np.array([1.0])).compute() == 4.0
    assert math.isnan(metrics.pearson_correlation(np.array([3.0]), np.array([1.0])).compute())


def test_cosine_similarity():
    a, b = rng.normal(size=(N, 6)).astype(np.float32), rng.normal(size=(N, 6)).astype(np.float32)
    weights = rng.uniform(0, 2, N).astype(np.float32)
    value = streamed(metrics.cosine_similarity, a, b, sizes=SIZES, weights=weights)
    assert value == pytest.approx(np.average(1 - paired_cosine_distances(a, b), weights=weights), rel=1e-5)
    scaled = streamed(metrics.cosine_similarity, a * np.float32(1e30), b * np.float32(1e-30), sizes=SIZES)
    assert scaled == pytest.approx(np.mean(1 - paired_cosine_distances(a, b)), rel=1e-5)
    assert metrics.cosine_similarity(np.zeros((1, 3)), np.ones((1, 3))).compute() == 0.0


@pytest.mark.slow
def test_several_outputs_count_together():
    labels, predicted = rng.normal(size=(N, 3)), rng.normal(size=(N, 3))
    value = streamed(metrics.mean_squared_error, labels, predicted, sizes=SIZES)
    assert value == pytest.approx(sk.mean_squared_error(labels, predicted), rel=1e-6)


COUNTS = {
    "calibration_error: bins": lambda k: metrics.calibration_error(np.ones(2), np.ones(2), bins=k),
    "top_k_accuracy: k": lambda k: metrics.top_k_accuracy(np.zeros(2, int), np.ones((2, 3)), k=k),
    "recall_at_k: k": lambda k: metrics.recall_at_k(np.zeros(2, int), np.ones((2, 3)), k=k),
    "ndcg: k": lambda k: metrics.ndcg(np.ones((2, 3)), np.ones((2, 3)), k=k),
    "mean_reciprocal_rank: k": lambda k: metrics.mean_reciprocal_rank(np.ones((2, 3)), np.ones((2, 3)), k=k),
}


@pytest.mark.parametrize("value", [True, 2.5, "2", 0, 10**400], ids=["bool", "float", "text", "zero", "huge"])
@pytest.mark.parametrize("name", COUNTS)
def test_a_count_of_a_metric_is_a_whole_number(name, value):
    with pytest.raises(EstimatorError, match=f"^{name} must be "):
        COUNTS[name](value)


@pytest.mark.parametrize("head", [MultiClassHead, MultiLabelHead])
def test_a_huge_number_of_classes_is_refused(head):
    with pytest.raises(EstimatorError, match=r"n_classes must be from \d to .* given: an integer of 1329 bits"):
        head(10**400)
