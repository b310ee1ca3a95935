"""Tests of early stopping: cases 38 to 42 of the reference, and the rules against a plain re-implementation."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core.errors import EstimatorError
from estimator_core.testing import tiny_estimator
from estimator_hooks import stop_if_no_decrease_hook
from estimator_hooks.early_stopping.criteria import NoImprovement, ThresholdCrossed, best_step

LOSS = {1000: 0.8, 2000: 0.7, 3000: 0.4, 3500: 0.41}
ACCURACY = {1000: 0.5, 2000: 0.6, 3000: 0.7, 3500: 0.68}


@pytest.mark.parametrize(("threshold", "min_steps", "stops"), [(0.8, 0, False), (0.6, 4000, False), (0.6, 0, True)])
def test_case_38_higher(threshold: float, min_steps: int, stops: bool):
    rule = ThresholdCrossed(better="higher", threshold=threshold, min_steps=min_steps)
    assert (rule.reason("accuracy", ACCURACY) is not None) == stops


@pytest.mark.parametrize(("threshold", "min_steps", "stops"), [(0.3, 0, False), (0.5, 4000, False), (0.5, 0, True)])
def test_case_39_lower(threshold: float, min_steps: int, stops: bool):
    rule = ThresholdCrossed(better="lower", threshold=threshold, min_steps=min_steps)
    assert (rule.reason("loss", LOSS) is not None) == stops


@pytest.mark.parametrize(("max_steps", "min_steps", "stops"), [(1500, 0, False), (500, 4000, False), (500, 0, True)])
def test_case_40_no_increase(max_steps: int, min_steps: int, stops: bool):
    rule = NoImprovement(better="higher", max_steps=max_steps, min_steps=min_steps)
    assert (rule.reason("accuracy", ACCURACY) is not None) == stops


@pytest.mark.parametrize(("max_steps", "min_steps", "stops"), [(1500, 0, False), (500, 4000, False), (500, 0, True)])
def test_case_41_no_decrease(max_steps: int, min_steps: int, stops: bool):
    rule = NoImprovement(better="lower", max_steps=max_steps, min_steps=min_steps)
    assert (rule.reason("loss", LOSS) is not None) == stops


@pytest.mark.parametrize("rule", [ThresholdCrossed, NoImprovement])
def test_min_steps_is_a_whole_number_like_other_steps_of_hooks(rule: Any):
    rest = {"threshold": 0.5} if rule is ThresholdCrossed else {"max_steps": 1e3}
    assert rule(better="lower", min_steps=1e3, **rest).reason("loss", LOSS) is not None or rule is NoImprovement
    for wrong in (True, 0.5, -1, 10**400, "2"):
        with pytest.raises(EstimatorError, match="min_steps must be"):
            rule(better="lower", min_steps=wrong, **rest)


@pytest.mark.parametrize("steps", [True, "2", None])
def test_steps_without_improvement_are_a_number(steps: Any, tmp_path: Path):
    with pytest.raises(EstimatorError, match="max_steps_without_decrease must be a number of steps"):
        stop_if_no_decrease_hook(tiny_estimator(str(tmp_path)), "loss", steps)


@pytest.mark.parametrize(("max_steps", "threshold", "stops"), [(1500, 0.3, False), (1500, 0.5, True), (500, 0.3, True)])
def test_case_42_either_of_two(max_steps: int, threshold: float, stops: bool):
    no_decrease = NoImprovement(better="lower", max_steps=max_steps, min_steps=0).reason("loss", LOSS)
    lower = ThresholdCrossed(better="lower", threshold=threshold, min_steps=0).reason("loss", LOSS)
    assert (no_decrease is not None or lower is not None) == stops


def test_equal_is_not_better():
    rule = ThresholdCrossed(better="lower", threshold=0.5, min_steps=0)
    assert rule.reason("loss", {1: 0.5}) is None
    assert NoImprovement(better="lower", max_steps=10, min_steps=0).reason("loss", {1: 0.5, 11: 0.5}) is not None


def test_nan_is_worse_than_everything():
    rule = NoImprovement(better="lower", max_steps=20, min_steps=0)
    assert rule.reason("loss", {10: math.nan, 20: 1.0, 30: 0.9}) is None
    assert rule.reason("loss", {10: 1.0, 20: math.nan, 30: math.nan}) is not None
    assert best_step("lower", {10: math.nan, 20: 1.0, 30: math.nan}) == 20
    assert best_step("lower", {10: math.nan}) is None


evaluations = st.dictionaries(st.integers(0, 50), st.integers(0, 5).map(float), max_size=12)


@given(values=evaluations, max_steps=st.integers(1, 30), min_steps=st.integers(0, 30))
def test_no_improvement_is_what_its_words_say(values: dict[int, float], max_steps: int, min_steps: int):
    late = {step: value for step, value in values.items() if step >= min_steps}
    expected = any(
        all(late[later] >= late[best] for later in late if best < later <= step)
        and all(late[earlier] > late[best] for earlier in late if earlier < best)
        and step - best >= max_steps
        for best in late
        for step in late
    )
    rule = NoImprovement(better="lower", max_steps=max_steps, min_steps=min_steps)
    assert (rule.reason("loss", values) is not None) == expected
    mirrored = NoImprovement(better="higher", max_steps=max_steps, min_steps=min_steps)
    assert (mirrored.reason("loss", {step: -value for step, value in values.items()}) is not None) == expected


@given(values=evaluations)
def test_best_step_is_the_earliest_of_the_best(values: dict[int, float]):
    expected = min((step for step in values if values[step] == min(values.values())), default=None)
    assert best_step("lower", values) == expected
