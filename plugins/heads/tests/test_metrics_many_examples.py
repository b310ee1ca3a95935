"""Tests with twenty million examples in batches. This is more than 2**24, where a float32 counter stops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics as sk

from estimator_core.metrics import compute_metrics, merge_metrics
from estimator_heads import metrics

BATCH, TIMES = 1 << 20, 20
EXAMPLES = BATCH * TIMES
assert EXAMPLES > 2**24


def accumulated(build, batches):
    """The metrics of all batches, merged on the device as in an evaluation."""

    @jax.jit
    def step(state, *batch):
        return merge_metrics(state, build(*batch))

    first, *rest = batches
    state = jax.jit(build)(*first)
    for batch in rest:
        state = step(state, *batch)
    return jax.device_get(state)


@pytest.mark.slow
def test_counts_and_sums_of_one_batch_twenty_times():
    labels = jnp.asarray(np.arange(BATCH) % 2)
    scores = jnp.where(labels == 1, 0.75, 0.25)

    def build(labels, scores):
        return {
            "accuracy": metrics.accuracy(labels, scores > 0.5),
            "recall": metrics.recall(labels, scores),
            "mean": metrics.mean(scores),
            "weighted": metrics.mean(scores, labels + 0.1),
            "auc": metrics.auc(labels, scores),
            "mse": metrics.mean_squared_error(labels, scores),
        }

    state = accumulated(build, [(labels, scores)] * TIMES)
    assert int(state["accuracy"].weight[0]) == EXAMPLES
    assert int(state["recall"].buckets[0].sum()) == EXAMPLES
    values = compute_metrics(state)
    ones, tenths = float(np.float32(1.1)), float(np.float32(0.1))
    # Each product of a value and its weight is rounded to float32.
    assert values.pop("weighted") == pytest.approx((0.75 * ones + 0.25 * tenths) / (ones + tenths), rel=1e-6)
    expected = {"accuracy": 1.0, "recall": 1.0, "mean": 0.5, "auc": 1.0, "mse": 0.0625}
    assert values == {name: pytest.approx(value, rel=1e-12) for name, value in expected.items()}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_example_counts_as_in_scikit_learn():
    rng = np.random.default_rng(31)
    labels = (rng.random(EXAMPLES, np.float32) < 0.3).astype(np.int8)
    # Multiples of 1/64 are in the middle of the buckets of 200 thresholds, so their area is exact.
    scores = np.clip(np.round(64 * rng.normal(0.4 + 0.2 * labels, 0.2)), 1, 63).astype(np.float32) / 64
    ids, called = rng.integers(0, 3, (2, EXAMPLES), np.int8)
    weights = rng.uniform(0.5, 2.0, EXAMPLES).astype(np.float32)

    def build(labels, scores, ids, called, weights):
        return {
            "precision": metrics.precision(labels, scores),
            "recall": metrics.recall(labels, scores),
            "specificity": metrics.specificity(labels, scores),
            "binary_f_beta": metrics.binary_f_beta(labels, scores, beta=2.0),
            "auc": metrics.auc(labels, scores),
            "weighted_auc": metrics.auc(labels, scores, weights),
            "confusion_matrix": metrics.confusion_matrix(ids, called, 3),
            "weighted_accuracy": metrics.accuracy(ids, called, weights),
            "f_beta": metrics.f_beta(ids, called, 3, weights, average="weighted"),
            "log_loss": metrics.log_loss(labels, scores, weights),
            "mean_squared_error": metrics.mean_squared_error(labels, scores, weights),
            "mean_absolute_error": metrics.mean_absolute_error(labels, scores),
            "r_squared": metrics.r_squared(labels, scores, weights),
            "pearson_correlation": metrics.pearson_correlation(labels, scores),
        }

    columns = (labels, scores, ids, called, weights)
    batches = ([column[start : start + BATCH] for column in columns] for start in range(0, EXAMPLES, BATCH))
    values = compute_metrics(accumulated(build, batches))
    positive, exact, w = scores > 0.5, scores.astype(float), weights.astype(float)
    matrix = sk.confusion_matrix(ids, called)
    assert matrix.sum() == EXAMPLES
    np.testing.assert_array_equal(values.pop("confusion_matrix"), matrix)
    expected = {
        "precision": sk.precision_score(labels, positive),
        "recall": sk.recall_score(labels, positive),
        "specificity": sk.recall_score(labels, positive, pos_label=0),
        "binary_f_beta": sk.fbeta_score(labels, positive, beta=2.0),
        "auc": sk.roc_auc_score(labels, scores),
        "weighted_auc": sk.roc_auc_score(labels, scores, sample_weight=w),
        "weighted_accuracy": sk.accuracy_score(ids, called, sample_weight=w),
        "f_beta": sk.f1_score(ids, called, average="weighted", sample_weight=w),
        "log_loss": sk.log_loss(labels, exact, sample_weight=w),
        "mean_squared_error": sk.mean_squared_error(labels, exact, sample_weight=w),
        "mean_absolute_error": sk.mean_absolute_error(labels, exact),
        "r_squared": sk.r2_score(labels, exact, sample_weight=w),
        "pearson_correlation": np.corrcoef(labels, exact)[0, 1],
    }
    assert values == {name: pytest.approx(value, rel=1e-6) for name, value in expected.items()}
