"""Tests that numbers of public functions are whole, not negative and not huge, and are refused by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import estimator_core as ec
from estimator_core.builtin_hooks import positive_secs, whole_steps
from estimator_core.errors import ArgumentError, ArgumentTypeError, check_count, is_integer
from estimator_core.export import build_raw_serving_input_receiver_fn
from estimator_core.inputs import InputContext, InputOptions, numpy_input_fn
from estimator_core.testing import tiny_estimator, tiny_input_fn

ROWS = {"x": np.zeros((4, 1), np.float32)}
HUGE = 10**400

COUNTS: dict[str, Callable[[Any], object]] = {
    "batch_size": lambda value: numpy_input_fn(ROWS, batch_size=value, shuffle=False),
    "num_epochs": lambda value: numpy_input_fn(ROWS, num_epochs=value, shuffle=False),
    "seed": lambda value: numpy_input_fn(ROWS, shuffle=True, seed=value),
    "InputOptions.batch_size": lambda value: InputOptions(batch_size=value),
    "num_input_pipelines": lambda value: InputContext(num_input_pipelines=value),
    "num_replicas_in_sync": lambda value: InputContext(num_replicas_in_sync=value),
    "global_batch_size": lambda value: InputContext().get_per_replica_batch_size(value),
    "min_size": lambda value: ec.FullySharded(min_size=value),
    "steps": lambda value: ec.EvalSpec(tiny_input_fn(), steps=value),
    "every_steps": lambda value: ec.EvalSpec(tiny_input_fn(), every_steps=value),
    "max_steps": lambda value: ec.TrainSpec(tiny_input_fn(), max_steps=value),
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [True, 2.0, float("nan"), "2", -1, HUGE, -HUGE], ids=lambda value: f"{value!r:.9}")
def test_a_number_that_is_no_count_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=name.rpartition(".")[2]):
        COUNTS[name](value)


@pytest.mark.parametrize("name", COUNTS)
def test_integers_of_python_and_numpy_are_counts(name: str) -> None:
    for value in (3, np.int64(3), np.uint8(3)):
        COUNTS[name](value)


def test_the_receiver_accepts_an_integer_of_numpy() -> None:
    three: Any = np.int64(3)
    build_raw_serving_input_receiver_fn({"x": np.zeros((1, 1))}, default_batch_size=three)


@pytest.mark.parametrize("given", [{"steps": np.int64(2)}, {"max_steps": np.uint8(2)}])
def test_training_accepts_integers_of_numpy(tmp_path: Path, given: Any) -> None:
    """The save at the end failed, because the checkpoint records them as JSON."""
    steps_per_dispatch: Any = np.int64(2)
    estimator = tiny_estimator(str(tmp_path), steps_per_dispatch=steps_per_dispatch)
    assert estimator.train(tiny_input_fn(), **given).stop_reason == "reached step 2"
    assert Path(tmp_path, "checkpoints", "2").is_dir()


def test_many_steps_are_refused_before_the_first(tmp_path: Any) -> None:
    """It once was an OverflowError after the first batch."""
    with pytest.raises(ArgumentError, match=r"max_steps must be from 1 to 2\*\*63 - 1, given: an integer of 1329 bits"):
        tiny_estimator(str(tmp_path)).train(tiny_input_fn(), max_steps=HUGE)
    assert not list(tmp_path.glob("checkpoints/*"))


@pytest.mark.parametrize(("check", "unit"), [(positive_secs, "seconds"), (whole_steps, "steps")])
def test_a_huge_number_of_a_hook_is_shown_by_its_bits(check: Any, unit: str) -> None:
    """The text once showed 400 digits, and asked for a number."""
    with pytest.raises(ArgumentError) as told:
        check(ec.Hook(), "timeout", HUGE)
    assert str(told.value) == f"Hook: timeout must be below 2**63 {unit}, given: an integer of 1329 bits."


@pytest.mark.parametrize("value", [np.array(5), jnp.int32(5), np.array([3, 4]), np.array([0]), jnp.float32(2)])
def test_an_array_of_steps_is_refused_with_the_cure(value: Any, tmp_path: Path) -> None:
    """An array of two numbers had the error of its truth value."""
    for given in ({"steps": value}, {"max_steps": value}):
        with pytest.raises(ArgumentTypeError, match=r"steps must be an integer, given: .*rray.*\. Convert it with int"):
            tiny_estimator(str(tmp_path)).train(tiny_input_fn(), **given)


def test_the_check_returns_an_int() -> None:
    assert (check_count("rows", np.uint16(7)), type(check_count("rows", np.uint16(7)))) == (7, int)
    assert check_count("rows", 0, least=0) == 0
    assert [is_integer(one) for one in (np.int8(1), np.True_, np.float32(1), 1)] == [True, False, False, True]
