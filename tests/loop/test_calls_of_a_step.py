"""Tests of the number of functions of the core that a step calls when no hook observes it.

While kernels run, each call takes several times as long as on an idle machine. On a busy machine, these calls are the
cost of the loop compared with a loop written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._model.shared_programs import forget_shared

CORE = str(Path(ec.__file__).parent)
FIRST, LAST = 20, 70  # steps that count
QUIET: dict[str, Any] = {"default_hooks": False, "log_step_count_steps": None, "save_summary_steps": None}
FLOAT, DOUBLE = np.ones((4, 3), np.float32), np.ones((4, 3))
INT, LONG = np.zeros(4, np.int32), np.zeros(4, np.int64)


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    x = features if not isinstance(features, dict) else features["x"]
    loss = jnp.mean((x @ ec.get_variable("w", (3,)) - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))


def calls_of_a_step(tmp_path: Path, element: Any, *, evaluation: bool = False) -> float:
    """Returns the average number of calls of functions of the core and resumptions of its generators per step. The
    input is a plain generator.

    Args:
        tmp_path: the folder used as model_dir.
        element: the element that the input yields as every batch.
        evaluation: whether to count the calls per batch of an evaluation.
    """
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(CORE)

    def batches() -> Iterator[Any]:
        for step in range(LAST + 10):
            if step == FIRST:
                sys.setprofile(count)
            if step == LAST:
                sys.setprofile(None)
            yield element

    config = ec.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=None, save_checkpoints_secs=None, **QUIET)
    forget_shared()  # a step that another Estimator compiled costs one more call
    try:
        if evaluation:
            estimator = ec.Estimator(model_fn, config=config).train(lambda: [element], steps=1)
            estimator.evaluate(batches, steps=LAST + 5)
        else:
            ec.Estimator(model_fn, config=config).train(batches, steps=LAST + 5)
    finally:
        sys.setprofile(None)
    return calls / (LAST - FIRST)


@pytest.mark.parametrize(
    ("element", "most"),
    [((FLOAT, INT), 4), (({"x": FLOAT}, INT), 7), ((DOUBLE, LONG), 8)],
    ids=["arrays", "a dict", "64 bits"],
)
def test_a_step_nobody_wants_to_see_takes_few_calls(tmp_path: Path, element: Any, most: int) -> None:
    # The check of the batch, the limit of dispatches in flight, and the generator of the input; then one for each part.
    assert 1 <= calls_of_a_step(tmp_path, element) <= most


def test_a_batch_of_an_evaluation_nobody_wants_to_see_takes_few_calls(tmp_path: Path) -> None:
    # Also the step, the comparison of its shapes with the previous batch, and the check for a stop by the platform.
    assert 1 <= calls_of_a_step(tmp_path, (FLOAT, INT), evaluation=True) <= 10


@pytest.mark.parametrize("good", [0, 1, 30])
def test_an_error_of_the_input_is_raised_although_a_stop_was_requested(tmp_path: Path, good: int) -> None:
    """A stop request that arrives together with an error of the input does not hide the error. This happens when a
    platform ends all processes.
    """
    runs: list[ec.Run] = []

    class Holds(ec.Hook):
        def begin(self, run: ec.Run) -> None:
            runs.append(run)

        def next_step(self, step: int) -> int | None:
            return None

    def batches() -> Iterator[Any]:
        for _ in range(good):
            yield FLOAT, np.zeros(4, np.float32)
        runs[0].request_stop("the platform ends")
        raise OSError("the disk is gone")

    config = ec.RunConfig(model_dir=str(tmp_path), steps_per_dispatch=1, prefetch=0, **QUIET)
    with pytest.raises(OSError, match="the disk is gone"):
        ec.Estimator(model_fn, config=config).train(batches, hooks=[Holds()], max_steps=100)
