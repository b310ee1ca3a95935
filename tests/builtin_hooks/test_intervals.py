"""Tests of the messages about intervals of hooks: they name the hook and the argument."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core._builtin_hooks.history import History, HistoryRecorderHook
from estimator_core.builtin_hooks import (
    CheckpointSaverHook,
    LoggingTensorHook,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from estimator_core.errors import ArgumentError, ArgumentTypeError
from tests.builtin_hooks.driver import drive


def logging_hook(**interval: Any) -> LoggingTensorHook:
    return LoggingTensorHook(["loss"], **interval)


def recorder(**interval: Any) -> HistoryRecorderHook:
    return HistoryRecorderHook(History(), **interval)


STEPS: list[tuple[Callable[..., Any], str, str]] = [
    (logging_hook, "LoggingTensorHook", "every_n_iter"),
    (StepCounterHook, "StepCounterHook", "every_n_steps"),
    (SummarySaverHook, "SummarySaverHook", "save_steps"),
    (CheckpointSaverHook, "CheckpointSaverHook", "save_steps"),
    (recorder, "HistoryRecorderHook", "every_n_steps"),
    (StopAtStepHook, "StopAtStepHook", "last_step"),
    (StopAtStepHook, "StopAtStepHook", "num_steps"),
]
SECS: list[tuple[Callable[..., Any], str, str]] = [
    (logging_hook, "LoggingTensorHook", "every_n_secs"),
    (lambda **given: StepCounterHook(None, **given), "StepCounterHook", "every_n_secs"),
    (SummarySaverHook, "SummarySaverHook", "save_secs"),
    (CheckpointSaverHook, "CheckpointSaverHook", "save_secs"),
]


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 2.5])
@pytest.mark.parametrize(("make", "hook", "argument"), STEPS)
def test_steps_that_are_not_positive_and_whole_are_refused(
    make: Callable[..., Any], hook: str, argument: str, value: Any
):
    with pytest.raises(ArgumentError, match=f"^{hook}: {argument} must be at least .*whole number, given: {value}"):
        make(**{argument: value})


@pytest.mark.parametrize("value", [0, -1.5, float("nan")])
@pytest.mark.parametrize(("make", "hook", "argument"), SECS)
def test_seconds_that_are_not_positive_are_refused(make: Callable[..., Any], hook: str, argument: str, value: Any):
    with pytest.raises(ArgumentError, match=f"^{hook}: {argument} must be > 0, given: {value}"):
        make(**{argument: value})


@pytest.mark.parametrize("value", ["10", True, np.bool_(True), [1], np.array([1])])
@pytest.mark.parametrize(("make", "hook", "argument"), STEPS + SECS)
def test_an_interval_that_is_not_a_number_is_refused(make: Callable[..., Any], hook: str, argument: str, value: Any):
    with pytest.raises(ArgumentTypeError, match=f"^{hook}: {argument} must be a number of s"):
        make(**{argument: value})


@pytest.mark.parametrize("value", [10.0, np.int64(10), np.float32(10.0), np.array(10), jnp.int32(10)])
def test_a_whole_number_of_any_type_is_an_interval(value: Any):
    hook = logging_hook(every_n_iter=value)
    drive([hook], steps=3)
    assert hook.next_step(3) == logging_hook(every_n_iter=10).next_step(3).__class__(step=11, within=9)
    assert StopAtStepHook(last_step=value).next_step(0) == 10
