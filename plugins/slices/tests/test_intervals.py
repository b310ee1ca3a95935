"""Tests of the intervals: they are as wide as theory says, and cover the true value as often as they promise."""

import math

import numpy as np
import pytest

from estimator_slices.jackknife import interval
from estimator_slices.keys import KeyReader


def grouped_means(values, groups):
    """Returns the mean without each group that has examples."""
    return [values[groups != group].mean() for group in np.unique(groups)]


def groups_of(count, reader=None):
    reader = reader or KeyReader([("x",)], groups=20, unit=None, part=0)
    return reader.read({"x": np.zeros(count)}, None).groups


def test_with_as_many_groups_as_examples_it_is_the_standard_error_of_a_mean():
    values = np.random.default_rng(0).normal(size=30)
    low, high = interval(values.mean(), grouped_means(values, np.arange(30)), 0.95)
    assert (high - low) / 2 == pytest.approx(2.045229642132703 * values.std(ddof=1) / math.sqrt(30))  # t(29)


def test_it_holds_the_true_value_as_often_as_it_says():
    rng, truth, rounds = np.random.default_rng(1), 0.8, 2000
    reader = KeyReader([("x",)], groups=20, unit=None, part=0)
    inside = 0
    for _ in range(rounds):
        values = (rng.uniform(size=300) < truth).astype(float)
        low, high = interval(values.mean(), grouped_means(values, groups_of(300, reader)), 0.95)
        inside += low <= truth <= high
    # With 2,000 rounds, the share of an exact 95% interval is within 0.95 +- 0.015, except once in 400 runs.
    assert abs(inside / rounds - 0.95) < 0.015


def test_groups_are_of_equal_chance_and_do_not_follow_the_order():
    counts = np.bincount(groups_of(20_000), minlength=20)
    assert np.abs(counts - 1000).max() < 150
    assert len(set(groups_of(20).tolist())) < 20


@pytest.mark.parametrize(("value", "without"), [(0.5, [0.5]), (math.nan, [0.1, 0.2]), (0.5, [0.1, math.nan])])
def test_none_where_nothing_can_be_said(value, without):
    assert interval(value, without, 0.95) is None
