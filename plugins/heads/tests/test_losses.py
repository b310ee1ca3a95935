"""Tests of losses: values, gradients against finite differences, and logits of any size."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from estimator_core.errors import ArgumentError
from estimator_heads import LossOptions, RankingHead, losses

rng = np.random.default_rng(21)
N, CLASSES = 6, 4
IDS = rng.integers(0, CLASSES, N)
HOT = rng.integers(0, 2, (N, CLASSES)).astype(np.float32)
SOFT = rng.uniform(0, 1, (N, CLASSES)).astype(np.float32)
COUNTS = rng.integers(0, 5, (N, CLASSES)).astype(np.float32)
VALID = rng.random((N, CLASSES)) < 0.8
GRADES = rng.integers(0, 4, (N, CLASSES))
OPTIONS = {
    "plain": LossOptions(),
    "smoothing": LossOptions(label_smoothing=0.2),
    "focal": LossOptions(focal_gamma=2.0),
    "focal below 1": LossOptions(focal_gamma=0.5),
    "class weights": LossOptions(class_weights=(0.5, 2.0)),
    "all": LossOptions(label_smoothing=0.1, focal_gamma=1.5, class_weights=(0.5, 2.0)),
}


def for_classes(options):
    weights = options.class_weights and (0.5, 2.0, 1.0, 0.0)
    return LossOptions(label_smoothing=options.label_smoothing, focal_gamma=options.focal_gamma, class_weights=weights)


LOSSES = {
    **{f"sigmoid {k}": lambda x, o=o: losses.sigmoid_cross_entropy(HOT, x, o) for k, o in OPTIONS.items()},
    "sigmoid soft labels": lambda x: losses.sigmoid_cross_entropy(SOFT, x),
    **{f"softmax {k}": lambda x, o=o: losses.softmax_cross_entropy(IDS, x, for_classes(o)) for k, o in OPTIONS.items()},
    "squared error": lambda x: losses.squared_error(COUNTS, x),
    "poisson": lambda x: losses.log_poisson(COUNTS, x),
    "full poisson": lambda x: losses.log_poisson(COUNTS, x, compute_full_loss=True),
    "pairwise": lambda x: losses.pairwise_logistic(GRADES, x, VALID),
    "listwise": lambda x: losses.listwise_softmax(GRADES, x, VALID),
    "retrieval": lambda x: losses.in_batch_softmax(
        losses.in_batch_scores(x[:, :2], x[:, 2:], temperature=0.5, candidate_ids=jnp.array([0, 1, 2, 0, 4, 5]))
    ),
}


def finite_differences(loss, logits, step=0.02):
    """The gradient of the sum of the losses, by central differences of fourth order. The sums are in float64."""
    directions = np.eye(logits.size, dtype=np.float32).reshape(logits.size, *logits.shape)
    offsets = np.array([-2, -1, 1, 2], np.float32)[:, None, None] * step * directions[:, None]
    moved = jax.vmap(jax.vmap(loss))(logits + offsets)
    sums = np.asarray(moved, np.float64).reshape(logits.size, 4, -1).sum(axis=-1)
    return (sums @ np.array([1, -8, 8, -1]) / (12 * step)).reshape(logits.shape)


@pytest.mark.parametrize("name", LOSSES)
def test_gradient_is_that_of_finite_differences(name):
    logits = rng.normal(0, 1.5, (N, CLASSES)).astype(np.float32)
    gradient = jax.grad(lambda x: jnp.sum(LOSSES[name](x)))(logits)
    np.testing.assert_allclose(gradient, finite_differences(LOSSES[name], logits), rtol=1e-4, atol=5e-4)


@pytest.mark.parametrize("dtype", [pytest.param(jnp.float32, marks=pytest.mark.slow), jnp.bfloat16])
@pytest.mark.parametrize("name", LOSSES)
def test_logits_of_ten_thousand(name, dtype):
    for signs in (np.ones((N, CLASSES)), -np.ones((N, CLASSES)), rng.choice([-1.0, 1.0], (N, CLASSES))):
        logits = jnp.asarray(1e4 * signs, dtype)
        values, gradient = jax.jit(jax.value_and_grad(lambda x: jnp.sum(LOSSES[name](x)), allow_int=False))(logits)
        assert gradient.dtype == dtype
        if "poisson" in name:  # exp(10000) is beyond float32, so it is infinite, never NaN
            assert not np.isnan(np.asarray(LOSSES[name](logits), np.float32)).any()
            assert not np.isnan(np.asarray(gradient, np.float32)).any()
        else:
            assert np.isfinite(float(values))
            assert np.isfinite(np.asarray(gradient, np.float32)).all()


def test_a_sure_and_right_model_has_no_loss_and_a_wrong_one_the_whole():
    right, wrong = jnp.array([1e4]), jnp.array([-1e4])
    label = jnp.array([1.0])
    assert float(losses.sigmoid_cross_entropy(label, right)[0]) == 0.0
    assert float(losses.sigmoid_cross_entropy(label, wrong)[0]) == 1e4
    assert float(losses.softmax_cross_entropy(jnp.array([0]), jnp.array([[1e4, 0.0, 0.0]]))[0]) == 0.0
    assert float(losses.softmax_cross_entropy(jnp.array([1]), jnp.array([[1e4, 0.0, 0.0]]))[0]) == 1e4
    assert float(jax.grad(lambda x: losses.sigmoid_cross_entropy(label, x)[0])(wrong)[0]) == -1.0


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_options_against_their_formula(smoothing):
    gamma, weights = 1.7, np.array([0.5, 2.0, 1.0, 0.3])
    logits = rng.normal(size=(N, CLASSES))
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    target = np.eye(CLASSES)[IDS] * (1 - smoothing) + smoothing / CLASSES
    expected = np.sum(target * weights * (1 - p) ** gamma * -np.log(p), axis=1)
    options = LossOptions(label_smoothing=smoothing, focal_gamma=gamma, class_weights=tuple(weights))
    np.testing.assert_allclose(losses.softmax_cross_entropy(IDS, logits, options), expected, rtol=1e-5)
    q = 1 / (1 + np.exp(-logits))
    y = HOT * (1 - smoothing) + smoothing / 2
    expected = 2.0 * y * (1 - q) ** gamma * -np.log(q) + 0.5 * (1 - y) * q**gamma * -np.log(1 - q)
    options = LossOptions(label_smoothing=smoothing, focal_gamma=gamma, class_weights=(0.5, 2.0))
    np.testing.assert_allclose(losses.sigmoid_cross_entropy(HOT, logits, options), expected, rtol=1e-5)


def test_plain_losses_against_optax():
    logits = jnp.asarray(rng.normal(0, 5, (N, CLASSES)), jnp.float32)
    exact = np.asarray(logits, np.float64)
    exact = np.log(np.exp(exact).sum(1)) - exact[np.arange(N), IDS]
    ours, theirs = (
        losses.softmax_cross_entropy(IDS, logits),
        optax.softmax_cross_entropy_with_integer_labels(logits, IDS),
    )
    np.testing.assert_allclose(ours, exact, rtol=1e-6, atol=np.spacing(np.abs(logits).max()))
    # optax subtracts two large numbers if the loss is small.
    assert np.abs(ours - exact).max() <= np.abs(theirs - exact).max()
    np.testing.assert_allclose(
        losses.sigmoid_cross_entropy(SOFT, logits), optax.sigmoid_binary_cross_entropy(logits, SOFT), rtol=1e-5
    )


def test_ranking_losses_by_hand():
    valid = jnp.array([[True, True, True, False]])
    labels, scores = jnp.array([[2, 1, 0, 3]]), jnp.array([[1.0, 2.0, 0.0, 9.0]])
    pairs = [math.log1p(math.exp(-d)) for d in (1 - 2, 1 - 0, 2 - 0)]
    assert float(losses.pairwise_logistic(labels, scores, valid)[0]) == pytest.approx(np.mean(pairs), rel=1e-6)
    total = sum(math.exp(s) for s in (1, 2, 0))
    expected = -(2 / 3 * math.log(math.e / total) + 1 / 3 * math.log(math.exp(2) / total))
    assert float(losses.listwise_softmax(labels, scores, valid)[0]) == pytest.approx(expected, rel=1e-6)
    nothing = jnp.zeros((1, 4), bool)
    assert float(losses.pairwise_logistic(labels, scores, nothing)[0]) == 0.0
    assert float(losses.listwise_softmax(labels, scores, nothing)[0]) == 0.0


@pytest.mark.parametrize("loss", ["pairwise", "listwise"])
def test_a_relevance_of_nan_is_not_a_place_without_an_item(loss):
    head = RankingHead(2, loss=loss)
    scores = np.array([[0.5, -0.5], [1.0, 2.0]], np.float32)
    assert math.isfinite(head.loss(np.array([[1.0, 0.0], [1.0, -1.0]]), scores))
    wrong = np.array([[1.0, 0.0], [1.0, np.nan]])
    assert math.isnan(head.loss(wrong, scores))
    assert math.isnan(head.metrics({}, scores, wrong)["average_loss"].compute())


@pytest.mark.parametrize("loss", ["pairwise", "listwise"])
def test_items_of_minus_infinity_rank_last_and_teach_nothing(loss):
    head = RankingHead(4, loss=loss)
    labels = np.where(VALID, GRADES, -1)

    def loss_of(scores, ended):
        return head.loss(labels, jnp.where(VALID, scores, -jnp.inf if ended else scores))

    scores = jnp.asarray(rng.normal(size=(N, CLASSES)), jnp.float32)
    np.testing.assert_array_equal(*(jax.grad(loss_of)(scores, ended) for ended in (False, True)))
    ended = jnp.where(VALID, scores, -jnp.inf)
    found, whole = (head.metrics({}, logits, labels) for logits in (ended, scores))
    assert {name: metric.compute() for name, metric in found.items()} == {
        name: metric.compute() for name, metric in whole.items()
    }
    places = np.asarray(head.predictions(ended)["ranks"])
    assert all(
        row[valid].max(initial=-1) < row[~valid].min(initial=CLASSES) for row, valid in zip(places, VALID, strict=True)
    )


def test_in_batch_softmax_leaves_accidental_hits_and_padding_out():
    q = jnp.asarray(rng.normal(size=(4, 3)), jnp.float32)
    c = jnp.asarray(rng.normal(size=(4, 3)), jnp.float32)
    valid = jnp.array([True, True, True, False])
    scores = losses.in_batch_scores(q, c, candidate_ids=jnp.array([7, 8, 7, 9]), valid=valid)
    found = losses.in_batch_softmax(scores)
    dense = np.asarray(q) @ np.asarray(c).T
    for row, others in ((0, [0, 1]), (1, [0, 1, 2]), (2, [1, 2])):
        expected = -dense[row, row] + np.log(np.exp(dense[row, others]).sum())
        assert float(found[row]) == pytest.approx(expected, rel=1e-4)
    corrected = losses.in_batch_scores(q, c, sampling_probability=jnp.array([0.5, 0.25, 0.125, 0.125]))
    np.testing.assert_allclose(corrected, dense - np.log([0.5, 0.25, 0.125, 0.125]), rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"label_smoothing": 1.0},
        {"label_smoothing": -0.1},
        {"focal_gamma": -1.0},
        {"focal_gamma": math.nan},
        {"class_weights": (1.0, -1.0)},
    ],
)
def test_options_outside_their_range_are_refused(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        LossOptions(**options)
