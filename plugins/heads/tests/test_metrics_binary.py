"""Tests of the metrics of two classes against scikit-learn, on random and on difficult data."""

import functools
import warnings

import numpy as np
import pytest
from sklearn import metrics as sk

from estimator_heads import metrics
from plugins.heads.tests.streaming import streamed

rng = np.random.default_rng(11)
N = 150


def data(kind):
    """Labels, scores in [0, 1] and weights, float32."""
    labels = rng.integers(0, 2, N)
    scores = np.clip(rng.normal(0.35 + 0.3 * labels, 0.2), 0, 1).astype(np.float32)
    weights = rng.uniform(0.1, 3.0, N).astype(np.float32)
    if kind == "ties":
        scores = np.full(N, 0.5, np.float32)
    elif kind == "few scores":
        scores = rng.choice(np.array([0.0, 0.25, 0.5, 1.0], np.float32), N)
    elif kind == "all positive":
        labels = np.ones(N, int)
    elif kind == "all negative":
        labels = np.zeros(N, int)
    elif kind == "zero weights":
        weights[rng.random(N) < 0.5] = 0.0
    elif kind == "one example":
        labels, scores, weights = labels[:1], scores[:1], weights[:1]
    return labels, scores, weights


KINDS = ["random", "ties", "few scores", "all positive", "all negative", "zero weights", "one example"]
SIZES = (64, 22)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threshold", [0.3, 0.5])
def test_precision_recall_f_beta_specificity(kind, threshold):
    labels, scores, weights = data(kind)
    called = scores > np.float32(threshold)
    reference = {
        metrics.precision: sk.precision_score,
        metrics.recall: sk.recall_score,
        metrics.specificity: functools.partial(sk.recall_score, pos_label=0),
        functools.partial(metrics.binary_f_beta, beta=2.0): functools.partial(sk.fbeta_score, beta=2.0),
    }
    for ours, theirs in reference.items():
        build = functools.partial(ours, threshold=threshold)
        unweighted = streamed(build, labels, scores, sizes=SIZES)
        assert unweighted == pytest.approx(theirs(labels, called, zero_division=0.0), rel=1e-12)
        weighted = streamed(build, labels, scores, sizes=SIZES, weights=weights)
        expected = theirs(labels, called, sample_weight=weights.astype(float), zero_division=0.0)
        assert weighted == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_auc_is_that_of_scores_cut_to_the_buckets(kind):
    labels, scores, weights = data(kind)
    ours = streamed(metrics.auc, labels, scores, sizes=SIZES, weights=weights)
    buckets = np.maximum(np.ceil(scores * np.float32(199)) - 1, 0)
    if len(set(labels[weights > 0])) < 2:
        assert ours == 0.0  # as tf.estimator does; undefined in scikit-learn
    else:
        assert ours == pytest.approx(sk.roc_auc_score(labels, buckets, sample_weight=weights.astype(float)), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_auc(kind):
    labels, scores, weights = data(kind)
    area = streamed(metrics.exact_auc, labels, scores, sizes=SIZES, weights=weights)
    precision = streamed(functools.partial(metrics.exact_auc, curve="PR"), labels, scores, sizes=SIZES, weights=weights)
    kept = weights > 0
    if len(set(labels[kept])) < 2:
        assert area == 0.0
    else:
        assert area == pytest.approx(sk.roc_auc_score(labels, scores, sample_weight=weights.astype(float)), rel=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no positive examples
        expected = sk.average_precision_score(labels[kept], scores[kept], sample_weight=weights[kept].astype(float))
    assert precision == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_operating_points_by_brute_force(kind):
    labels, scores, weights = data(kind)
    positive, negative = weights * (labels == 1), weights * (labels == 0)
    thresholds = np.append(np.append(-1e-7, np.arange(1, 199) / 199), 1 + 1e-7)
    above = np.maximum(np.ceil(scores * np.float32(199)) - 1, 0)[None, :] >= np.arange(200)[:, None]
    assert len(thresholds) == len(above)
    hits, false = (above * positive).sum(1), (above * negative).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.nan_to_num(hits / (hits + false))
        recall = np.nan_to_num(hits / positive.sum())
        specificity = np.nan_to_num((negative.sum() - false) / negative.sum())
    for bound in (0.0, 0.4, 0.85, 1.0):
        for ours, wanted, bounded in [
            (metrics.precision_at_recall, precision, recall),
            (metrics.recall_at_precision, recall, precision),
            (metrics.sensitivity_at_specificity, recall, specificity),
            (metrics.specificity_at_sensitivity, specificity, recall),
        ]:
            value = streamed(lambda y, s, w, f=ours, b=bound: f(y, s, b, w), labels, scores, weights, sizes=(N,))
            # A bound that is met except for rounding may count as met or as missed, so both answers are right.
            answers = [wanted[bounded >= bound + slack].max(initial=0.0) for slack in (-1e-9, 1e-9)]
            assert any(value == pytest.approx(answer, rel=1e-6, abs=1e-9) for answer in answers)


@pytest.mark.parametrize("kind", KINDS)
def test_log_loss_and_calibration(kind):
    labels, scores, weights = data(kind)
    kept = weights > 0
    eps = np.finfo(np.float32).eps
    clipped = np.clip(scores, eps, 1 - eps).astype(float)
    ours = streamed(metrics.log_loss, labels, scores, sizes=SIZES, weights=weights)
    expected = sk.log_loss(labels[kept], clipped[kept], sample_weight=weights[kept].astype(float), labels=[0, 1])
    assert ours == pytest.approx(expected, rel=1e-5)
    error = streamed(metrics.calibration_error, labels, scores, sizes=SIZES, weights=weights)
    bins = np.maximum(np.ceil(scores * np.float32(10)) - 1, 0)
    gaps = [abs(np.sum((weights * (scores - labels))[bins == b], dtype=float)) for b in range(10)]
    assert error == pytest.approx(sum(gaps) / weights.sum(dtype=float), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    "build",
    [
        metrics.precision,
        metrics.recall,
        metrics.specificity,
        metrics.binary_f_beta,
        metrics.auc,
        functools.partial(metrics.auc, curve="PR"),
        metrics.exact_auc,
        functools.partial(metrics.precision_at_recall, recall=0.5),
        metrics.calibration_error,
        metrics.log_loss,
        functools.partial(metrics.recall_at_precision, precision=0.5),
        functools.partial(metrics.sensitivity_at_specificity, specificity=0.5),
        functools.partial(metrics.specificity_at_sensitivity, sensitivity=0.5),
        metrics.mean_squared_error,
        metrics.root_mean_squared_error,
        metrics.mean_absolute_error,
        metrics.r_squared,
        metrics.pearson_correlation,
        lambda labels, scores, **weights: metrics.mean(scores, **weights),
        lambda labels, scores, **weights: metrics.perplexity(scores, **weights),
    ],
)
def test_a_nan_score_is_never_hidden_unless_it_has_no_weight(build):
    labels, scores = np.array([0, 1, 1]), np.array([0.2, np.nan, 0.9], np.float32)
    assert np.isnan(build(labels, scores).compute())
    counted = build(labels, scores, weights=np.array([1.0, 0.0, 1.0])).compute()
    assert not np.isnan(counted)
    assert counted == pytest.approx(build(labels[[0, 2]], scores[[0, 2]], weights=np.ones(2)).compute())


@pytest.mark.parametrize(
    "build",
    [
        functools.partial(metrics.top_k_accuracy, k=1),
        functools.partial(metrics.recall_at_k, k=1),
        metrics.ndcg,
        metrics.mean_reciprocal_rank,
        metrics.cosine_similarity,
        metrics.log_loss,
    ],
    ids=lambda build: getattr(build, "func", build).__name__,
)
def test_a_nan_in_a_row_of_scores_is_never_hidden_unless_the_row_has_no_weight(build):
    ids, scores = np.array([0, 1, 1]), np.array([[0.2, 0.8], [np.nan, 0.5], [0.1, 0.9]], np.float32)
    if build is metrics.log_loss:  # uses only the score of the label
        scores[1] = np.nan
    labels = ids if build is metrics.log_loss or "top_k" in str(build) else np.eye(2)[ids]
    assert np.isnan(build(labels, scores).compute())
    counted = build(labels, scores, weights=np.array([1.0, 0.0, 1.0])).compute()
    assert counted == pytest.approx(build(labels[[0, 2]], scores[[0, 2]], weights=np.ones(2)).compute())


@pytest.mark.parametrize("score", [-0.1, 1.1, np.inf])
def test_scores_outside_0_to_1_are_not_probabilities(score):
    assert np.isnan(metrics.auc(np.array([0, 1]), np.array([0.5, score])).compute())
    assert metrics.exact_auc(np.array([0, 1]), np.array([0.5, abs(score) + 1])).compute() == 1.0
