"""Tests of the metrics of several classes and of lists against scikit-learn, on random and on difficult data."""

import functools

import numpy as np
import pytest
from sklearn import metrics as sk

from estimator_core.errors import ArgumentError
from estimator_heads import metrics
from plugins.heads.tests.streaming import streamed

rng = np.random.default_rng(12)
N, CLASSES = 150, 5
SIZES = (64, 22)


def data(kind):
    """Class ids, predicted ids and weights."""
    labels, predicted = rng.integers(0, CLASSES, N), rng.integers(0, CLASSES, N)
    predicted = np.where(rng.random(N) < 0.5, labels, predicted)
    weights = rng.uniform(0.1, 3.0, N).astype(np.float32)
    if kind == "one class":
        labels = np.full(N, 3)
    elif kind == "one prediction":
        predicted = np.full(N, 2)
    elif kind == "zero weights":
        weights[rng.random(N) < 0.5] = 0.0
    elif kind == "one example":
        labels, predicted, weights = labels[:1], predicted[:1], weights[:1]
    return labels, predicted, weights


KINDS = ["random", "one class", "one prediction", "zero weights", "one example"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", "none"])
@pytest.mark.parametrize("indices", [None, [1, 3]])
def test_precision_recall_f_beta(kind, average, indices):
    labels, predicted, weights = data(kind)
    pairs = [
        (metrics.class_precision, sk.precision_score),
        (metrics.class_recall, sk.recall_score),
        (functools.partial(metrics.f_beta, beta=0.5), functools.partial(sk.fbeta_score, beta=0.5)),
    ]
    chosen = list(range(CLASSES)) if indices is None else indices
    for ours, theirs in pairs:
        expected = theirs(
            labels,
            predicted,
            labels=chosen,
            average=None if average == "none" else average,
            sample_weight=weights.astype(float),
            zero_division=0.0,
        )
        build = functools.partial(_swapped, ours, n_classes=CLASSES, average=average, indices=indices)
        value = streamed(build, labels, predicted, sizes=SIZES, weights=weights)
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def _swapped(function, labels, predicted, weights, **options):
    return function(labels, predicted, weights=weights, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_confusion_matrix(kind):
    labels, predicted, weights = data(kind)
    build = functools.partial(metrics.confusion_matrix, n_classes=CLASSES)
    ids = list(range(CLASSES))
    plain = streamed(build, labels, predicted, sizes=SIZES)
    np.testing.assert_array_equal(plain, sk.confusion_matrix(labels, predicted, labels=ids))
    weighted = streamed(lambda y, p, w: build(y, p, weights=w), labels, predicted, weights, sizes=SIZES)
    if weights.any():
        expected = sk.confusion_matrix(labels, predicted, labels=ids, sample_weight=weights.astype(float))
        np.testing.assert_allclose(weighted, expected, rtol=1e-6)


def test_class_ids_out_of_range_are_never_hidden():
    assert np.isnan(metrics.confusion_matrix(np.array([0, 5]), np.array([0, 1]), 3).compute()).all()
    assert np.isnan(metrics.class_recall(np.array([0, 1]), np.array([0, -1]), 3).compute())
    for wrong in (-1, 3):
        assert np.isnan(metrics.top_k_accuracy(np.array([0, wrong]), np.eye(2, 3, dtype=np.float32), k=1).compute())


@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_top_k_accuracy(k):
    labels, weights = rng.integers(0, CLASSES, N), rng.uniform(0, 2, N).astype(np.float32)
    scores = rng.normal(size=(N, CLASSES)).astype(np.float32)
    value = streamed(lambda y, s, w: metrics.top_k_accuracy(y, s, k, w), labels, scores, weights, sizes=SIZES)
    # scikit-learn warns if k reaches the number of classes. The answer is 1 then.
    if k == CLASSES:
        assert value == 1.0
    else:
        expected = sk.top_k_accuracy_score(
            labels, scores, k=k, sample_weight=weights.astype(float), labels=range(CLASSES)
        )
        assert value == pytest.approx(expected, rel=1e-6)


def test_top_k_with_ties_and_nan():
    assert metrics.top_k_accuracy(np.array([1]), np.zeros((1, 4)), 2).compute() == 1.0
    assert metrics.top_k_accuracy(np.array([3]), np.zeros((1, 4)), 2).compute() == 0.0
    assert np.isnan(metrics.top_k_accuracy(np.array([0]), np.array([[0.1, np.nan]]), 1).compute())
    assert np.isnan(metrics.top_k_accuracy(np.array([7]), np.zeros((1, 4)), 2).compute())


@pytest.mark.parametrize("k", [1, 3])
def test_recall_at_k(k):
    labels = rng.integers(0, 2, (N, CLASSES))
    scores = rng.normal(size=(N, CLASSES)).astype(np.float32)
    value = streamed(lambda y, s: metrics.recall_at_k(y, s, k), labels, scores, sizes=SIZES)
    best = np.argsort(-scores, axis=1)[:, :k]
    shares = [labels[i, best[i]].sum() / labels[i].sum() for i in range(N) if labels[i].any()]
    assert value == pytest.approx(np.mean(shares), rel=1e-6)


@pytest.mark.parametrize("k", [None, 3])
def test_ndcg(k):
    relevance = rng.integers(0, 4, (N, 8)).astype(np.float32)
    relevance[:3] = 0.0
    scores, weights = rng.normal(size=(N, 8)).astype(np.float32), rng.uniform(0, 2, N).astype(np.float32)
    build = functools.partial(metrics.ndcg, k=k, exponential_gain=False)
    value = streamed(build, relevance, scores, sizes=SIZES, weights=weights)
    some = relevance.any(axis=1)  # scikit-learn counts lists without a relevant item as 0. Here they are skipped.
    expected = sk.ndcg_score(relevance[some], scores[some], k=k, sample_weight=weights[some].astype(float))
    assert value == pytest.approx(expected, rel=1e-5)
    gained = streamed(functools.partial(metrics.ndcg, k=k), relevance, scores, sizes=SIZES, weights=weights)
    expected = sk.ndcg_score(2 ** relevance[some] - 1, scores[some], k=k, sample_weight=weights[some].astype(float))
    assert gained == pytest.approx(expected, rel=1e-5)


def test_places_without_an_item_do_not_count():
    relevance, scores = np.array([[1.0, 0.0, 3.0]]), np.array([[0.1, 0.5, 9.0]])
    valid = np.array([[True, True, False]])
    whole = metrics.ndcg(relevance[:, :2], scores[:, :2]).compute()
    assert metrics.ndcg(relevance, scores, valid=valid).compute() == pytest.approx(whole)
    assert metrics.mean_reciprocal_rank(relevance, scores, valid=valid).compute() == 0.5


def test_mean_reciprocal_rank_of_one_relevant_item():
    places = rng.integers(0, 8, N)
    relevance = np.eye(8)[places]
    scores = rng.normal(size=(N, 8)).astype(np.float32)
    value = streamed(metrics.mean_reciprocal_rank, relevance, scores, sizes=SIZES)
    assert value == pytest.approx(sk.label_ranking_average_precision_score(relevance, scores), rel=1e-6)
    cut = streamed(functools.partial(metrics.mean_reciprocal_rank, k=2), relevance, scores, sizes=SIZES)
    ranks = 1 + (scores > scores[np.arange(N), places][:, None]).sum(axis=1)
    assert cut == pytest.approx(np.mean(np.where(ranks <= 2, 1 / ranks, 0.0)), rel=1e-6)


def test_log_loss_and_perplexity_of_classes():
    labels = rng.integers(0, CLASSES, N)
    probabilities = rng.dirichlet(np.ones(CLASSES), N).astype(np.float32)
    value = streamed(metrics.log_loss, labels, probabilities, sizes=SIZES)
    expected = sk.log_loss(labels, probabilities / probabilities.sum(1, keepdims=True, dtype=float))
    assert value == pytest.approx(expected, rel=1e-5)
    losses = -np.log(probabilities[np.arange(N), labels])
    assert streamed(metrics.perplexity, losses, sizes=SIZES) == pytest.approx(np.exp(expected), rel=1e-5)
    assert metrics.perplexity(np.array([1000.0])).compute() == np.inf


def test_log_loss_takes_what_the_heads_take_and_hides_nothing():
    probabilities = rng.dirichlet(np.ones(3), 4).astype(np.float32)
    ids = np.array([0, 2, 1, 1])
    assert metrics.log_loss(ids[:, None], probabilities).compute() == metrics.log_loss(ids, probabilities).compute()
    assert np.isnan(metrics.log_loss(np.array([0, 3]), probabilities[:2]).compute())
    for label, probability in [(1.0, 1.5), (1.0, -0.1), (2.0, 0.5), (np.nan, 0.5)]:
        assert np.isnan(metrics.log_loss(np.array([label, 0.0]), np.array([probability, 0.5])).compute())


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.confusion_matrix(np.zeros((3, 2), int), np.zeros(3, int), 2),
        lambda: metrics.f_beta(np.zeros(3, int), np.zeros(3, int), 2, average="mean"),
        lambda: metrics.f_beta(np.zeros(3, int), np.zeros(3, int), 2, indices=[2]),
        lambda: metrics.top_k_accuracy(np.zeros(3, int), np.zeros((3, 2)), 0),
        lambda: metrics.top_k_accuracy(np.zeros(2, int), np.zeros((3, 2)), 1),
        lambda: metrics.recall_at_k(np.zeros((3, 2)), np.zeros((3, 3)), 1),
        lambda: metrics.ndcg(np.zeros((3, 2)), np.zeros((3, 3))),
        lambda: metrics.ndcg(np.zeros((3, 2)), np.zeros((3, 2)), k=0),
        lambda: metrics.mean_reciprocal_rank(np.zeros(3), np.zeros(3)),
        lambda: metrics.log_loss(np.zeros(2, int), np.ones((3, 2))),
        lambda: metrics.auc(np.zeros(2), np.zeros(3)),
        lambda: metrics.auc(np.zeros(2), np.zeros(2), curve="roc"),
        lambda: metrics.auc(np.zeros(2), np.zeros(2), thresholds=1),
        lambda: metrics.exact_auc(np.zeros(2), np.zeros(2), curve="roc"),
        lambda: metrics.precision_at_recall(np.zeros(2), np.zeros(2), recall=1.5),
        lambda: metrics.calibration_error(np.zeros(2), np.zeros(2), bins=0),
        lambda: metrics.cosine_similarity(np.zeros(2), np.zeros(2)),
    ],
)
def test_what_cannot_be_computed_is_refused(call):
    with pytest.raises(ArgumentError):
        call()
