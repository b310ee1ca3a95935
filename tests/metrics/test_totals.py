"""Tests that totals stay exact, whatever the split, the order and the size."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estimator_core as ec
from estimator_core._metrics import totals
from estimator_core._metrics.totals import bucket_totals, merge_totals, total, total_value

finite = st.floats(-1e6, 1e6, width=32)


def test_counts_carry_beyond_2_to_the_32():
    almost = jnp.array([2**32 - 3, 7], jnp.uint32)
    added = merge_totals(almost, total(jnp.ones(5, bool)))
    assert int(total_value(added)) == 8 * 2**32 + 2


def test_counting_does_not_stop_at_2_to_the_24():
    # float32 would stay at 16777216.
    state = jnp.array([2**24, 0], jnp.uint32)
    for _ in range(3):
        state = merge_totals(state, total(jnp.ones(1, bool)))
    assert int(total_value(state)) == 2**24 + 3


def test_weighted_sums_do_not_stop_at_2_to_the_24():
    state = total(jnp.array([2.0**24]))
    for _ in range(100):
        state = merge_totals(state, total(jnp.ones(1)))
    assert total_value(state) == 2**24 + 100


@settings(deadline=None, max_examples=60)
@given(st.lists(finite, min_size=1, max_size=60), st.randoms())
def test_any_split_in_any_order_gives_the_same_sum(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    cut = random.randint(0, len(values))
    whole = total(np.array(values, np.float32))
    parts = merge_totals(total(np.array(shuffled[:cut], np.float32)), total(np.array(shuffled[cut:], np.float32)))
    scale = math.fsum(abs(v) for v in values)
    assert abs(total_value(whole) - math.fsum(values)) <= 1e-13 * scale
    assert abs(total_value(parts) - math.fsum(values)) <= 1e-13 * scale


@pytest.mark.parametrize("order", list(itertools.permutations([1e8, 1.0, -1e8])))
def test_cancellation_keeps_the_small_term(order):
    assert total_value(total(jnp.array(order))) == 1.0


def test_sum_of_a_million_terms_is_exact_under_jit():
    values = np.random.default_rng(0).lognormal(0, 4, 1_000_000).astype(np.float32)
    summed = total_value(jax.jit(total)(values))
    assert summed == pytest.approx(math.fsum(values.tolist()), rel=1e-12)
    assert total_value(jax.jit(total)(values[::-1])) == summed


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_values_that_are_not_finite_stay_visible(bad):
    state = merge_totals(total(jnp.array([1.0, bad])), total(jnp.array([2.0])))
    np.testing.assert_equal(float(total_value(state)), bad)


def test_weight_zero_leaves_a_nan_out():
    assert total_value(total(jnp.array([np.nan, 3.0]), jnp.array([0.0, 2.0]))) == 6.0


def test_bfloat16_values_are_summed_in_float32():
    assert total_value(total(jnp.ones(1000, jnp.bfloat16))) == 1000.0


def test_axis_keeps_the_other_axes():
    state = total(jnp.arange(6.0).reshape(3, 2), axis=0)
    np.testing.assert_array_equal(total_value(state), [6.0, 9.0])


@pytest.mark.parametrize("scale", [1e-37, 1e-20, 1.0, 1e20, 1e38])
def test_the_whole_range_of_float32(scale):
    values = np.array([scale, -scale / 3, scale / 5], np.float32)
    assert total_value(total(values)) == pytest.approx(math.fsum(values.tolist()), rel=1e-12)


def test_buckets_count_and_weigh():
    rng = np.random.default_rng(2)
    buckets, weights = rng.integers(-1, 6, 1000), rng.lognormal(0, 2, 1000).astype(np.float32)
    inside = (buckets >= 0) & (buckets < 5)
    counts = np.bincount(buckets[inside], minlength=5)
    sums = np.bincount(buckets[inside], weights[inside].astype(np.float64), minlength=5)
    np.testing.assert_array_equal(total_value(bucket_totals(buckets, 5)), counts)
    np.testing.assert_array_equal(total_value(bucket_totals(buckets, 5, inside)), counts)
    np.testing.assert_allclose(total_value(bucket_totals(buckets, 5, weights)), sums, rtol=1e-12)


def test_empty_sums_are_zero():
    assert total_value(total(jnp.zeros(0))) == 0.0
    np.testing.assert_array_equal(total_value(total(jnp.zeros((0, 3)), axis=0)), [0.0, 0.0, 0.0])


def test_a_metric_is_traced_once_however_often_a_model_fn_is(monkeypatch, tmp_path):
    """The second of two Estimators traces its model_fn in discovery, step and evaluation, but traces no metric
    again.
    """
    traced = []

    def counted(terms, *args, **options):
        traced.append(terms.shape)
        return exact(terms, *args, **options)

    exact = totals.exact_sum
    monkeypatch.setattr(totals, "exact_sum", counted)
    calls = []

    def model_fn(features, labels, mode):
        calls.append(mode)
        y = features["x"] * ec.get_variable("w", (), jax.nn.initializers.ones)
        metric = ec.metrics.mean(y, weights=features["x"])
        return ec.EstimatorSpec(mode, loss=y.sum(), train_op=optax.sgd(0.1), eval_metric_ops={"mean": metric})

    x = np.arange(23, dtype=np.float32)  # a shape that only this test uses
    found, traces = [], []
    for name in ("first", "second"):
        config = ec.RunConfig(model_dir=str(tmp_path / name), default_hooks=False)
        estimator = ec.Estimator(model_fn, config=config)
        estimator.train(lambda: [({"x": x}, None)])
        found.append(estimator.evaluate(lambda: [({"x": x}, None)])["mean"])
        traces.append((len(calls), traced.count((23,))))
    (calls_of_first, of_first), (all_calls, of_both) = traces
    assert all_calls >= calls_of_first + 3
    assert of_first == of_both >= 1
    assert found[0] == found[1]


def test_a_total_has_no_derivative():
    def first(x):
        return jnp.sum(total(x * 2.0, x)[0]) + jnp.sum(bucket_totals(jnp.array([0, 1]), 2, x)[0])

    assert jax.grad(first)(jnp.array([3.0, 5.0])).tolist() == [0.0, 0.0]
