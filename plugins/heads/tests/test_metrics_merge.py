"""Every metric has the same value for any split of the data, in any order and grouping, with or without padding."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_core.metrics import applying_example_weights, compute_metrics, merge_metrics, split_host_metrics
from estimator_heads import metrics
from plugins.heads.tests import metric_builders

ROWS, SLOTS = 24, 6

_rng = np.random.default_rng(5)
LABELS = _rng.integers(0, metric_builders.CLASSES, ROWS).astype(np.int32)
SCORES = _rng.dirichlet(np.ones(metric_builders.CLASSES), ROWS).astype(np.float32)
WEIGHTS = _rng.lognormal(0, 2, ROWS).astype(np.float32)


@functools.partial(jax.jit, static_argnames="weighted")
def padded_metrics(labels, scores, weights, mask, *, weighted):
    with applying_example_weights(mask):
        return metric_builders.all_metrics(labels, scores, weights if weighted else None)


@jax.jit
def merge_on_device(left, right):
    return merge_metrics(left, right)


def merged(left, right):
    device_left, host_left = split_host_metrics(left)
    device_right, host_right = split_host_metrics(right)
    return merge_on_device(device_left, device_right) | merge_metrics(host_left, host_right)


def metrics_of(rows, weighted):
    """The metrics of at most SLOTS rows, with padding rows that must not count."""
    index = np.zeros(SLOTS, int)
    index[: len(rows)] = rows
    mask = (np.arange(SLOTS) < len(rows)).astype(np.float32)
    scores = np.where(mask[:, None] > 0, SCORES[index], np.nan)
    return padded_metrics(LABELS[index], scores, WEIGHTS[index], mask, weighted=weighted)


@functools.cache
def whole(weighted):
    weights = WEIGHTS if weighted else None
    built = jax.jit(metric_builders.all_metrics)(LABELS, SCORES, weights)
    return jax.device_get(built), compute_metrics(built)


def split(seed):
    """The rows in a random order, in parts of 0 to SLOTS rows."""
    rng = np.random.default_rng(seed)
    rows, parts = rng.permutation(ROWS), []
    while len(rows):
        size = rng.integers(0, SLOTS + 1)
        parts.append(rows[:size])
        rows = rows[size:]
    return parts


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.randoms(use_true_random=False))
def test_any_split_order_and_grouping(weighted, seed, random):
    pieces = [metrics_of(rows, weighted) for rows in split(seed)]
    while len(pieces) > 1:
        left = pieces.pop(random.randrange(len(pieces)))
        right = pieces.pop(random.randrange(len(pieces)))
        pieces.append(merged(left, right))
    states, values = whole(weighted)
    for name, value in compute_metrics(pieces[0]).items():
        np.testing.assert_allclose(value, values[name], rtol=1e-6, atol=1e-12, err_msg=name)
    # Counts are bitwise the same.
    device, _ = split_host_metrics(jax.device_get(pieces[0]))
    for name, metric in device.items():
        for ours, theirs in zip(jax.tree.leaves(metric), jax.tree.leaves(states[name]), strict=True):
            if ours.dtype == np.uint32:
                np.testing.assert_array_equal(ours, theirs, err_msg=name)


@pytest.mark.slow
def test_counts_are_integers_where_there_are_no_weights():
    device, _ = split_host_metrics(metric_builders.unweighted(LABELS, SCORES))
    for name in ("accuracy", "precision", "auc", "confusion_matrix", "f_beta", "precision_at_recall", "span_f1"):
        assert {leaf.dtype for leaf in jax.tree.leaves(device[name])} == {np.dtype(np.uint32)}, name


def test_every_public_metric_is_tested_here():
    public = {name for name in vars(metrics) if callable(getattr(metrics, name)) and not name.startswith("_")}
    assert public <= set(metric_builders.BUILDERS)
