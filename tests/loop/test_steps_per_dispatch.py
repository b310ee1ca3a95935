"""Tests of `steps_per_dispatch="auto"`: it is measured once per batch shape, and only with enough batches."""

import logging
from typing import Any

import numpy as np
import pytest

import estimator_core as ec


@pytest.fixture
def choices(caplog: Any) -> Any:
    """Returns the log lines about the choice of each call."""
    caplog.set_level(logging.INFO, "estimator_core")
    return lambda: [line for line in caplog.messages if line.startswith("steps_per_dispatch:")]


def batches(data: Any, count: int, size: int = 8) -> Any:
    one = ({"x": data.x[:size]}, data.y[:size])
    return ec.inputs.from_iterable(lambda: [one] * count)


def is_known(line: str) -> bool:
    return line.endswith("as measured before.")


def test_a_further_call_uses_what_was_measured(make_estimator: Any, data: Any, choices: Any) -> None:
    estimator = make_estimator(steps_per_dispatch="auto")
    for _ in range(3):
        estimator.train(batches(data, 50))
    first, *others = choices()
    assert not is_known(first)
    chosen = first.removeprefix("steps_per_dispatch: ").split()[0].rstrip(",")
    assert others == [f"steps_per_dispatch: {chosen}, as measured before."] * 2


def test_batches_of_another_shape_are_measured(make_estimator: Any, data: Any, choices: Any) -> None:
    estimator = make_estimator(steps_per_dispatch="auto")
    for size in (8, 16, 8):
        estimator.train(batches(data, 50, size))
    assert [is_known(line) for line in choices()] == [False, False, True]


def test_too_few_batches_settle_nothing(make_estimator: Any, data: Any, choices: Any) -> None:
    estimator = make_estimator(steps_per_dispatch="auto")
    estimator.train(batches(data, 5))
    estimator.train(batches(data, 50))
    few, enough = choices()
    assert "there are fewer than 20 batches" in few
    assert not is_known(enough)
    assert "there are fewer than 20 batches" not in enough


def test_measuring_leaves_the_run_as_it_was(make_estimator: Any, data: Any, tmp_path: Any) -> None:
    ends = {}
    for asked in ("auto", 1):
        estimator = make_estimator(steps_per_dispatch=asked, model_dir=tmp_path / str(asked))
        for _ in range(2):
            estimator.train(batches(data, 30))
        ends[asked] = estimator.variables
    for name, value in ends[1].items():
        np.testing.assert_array_equal(ends["auto"][name], value)


def test_an_iterator_that_is_handed_in_again_loses_no_batch(make_estimator: Any) -> None:
    drawn: list[int] = []

    def numbered() -> Any:
        for number in range(100):
            drawn.append(number)
            yield {"x": np.full((2, 3), number, np.float32)}, np.zeros(2, np.float32)

    iterator = numbered()
    estimator = make_estimator(steps_per_dispatch=4, log_step_count_steps=2)
    for _ in range(3):
        estimator.train(lambda: iterator, steps=8)
    assert drawn == list(range(24))
