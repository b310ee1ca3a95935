"""Tests of the number of traces of model_fn: one per (mode, batch shape, steps per dispatch) plus one discovery, for
any number of evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import estimator_core as ec
from estimator_core._model.shared_programs import forget_shared
from tests.loop.conftest import linear_model_fn


class Counting:
    """An input that counts how often it was opened and records which batches were drawn."""

    def __init__(self, input_fn: Callable[..., Any]) -> None:
        self.input_fn, self.opened = input_fn, 0

    def __call__(self, config: Any) -> Any:
        self.opened += 1
        return self.input_fn(config=config)


def run(make: Any, train_input: Any, eval_input: Any, *, steps: int, **config: Any) -> tuple[ec.Estimator, Counting]:
    estimator = make(save_checkpoints_steps=10, **config)
    training = Counting(train_input)
    ec.train_and_evaluate(estimator, ec.TrainSpec(training, max_steps=steps), ec.EvalSpec(eval_input))
    return estimator, training


@pytest.mark.parametrize(("k", "expected"), [(1, 1), (5, 2)])
def test_ten_evaluations_trace_no_more_than_one(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Any, k: int, expected: int
) -> None:
    once, _ = run(make_estimator, train_input, eval_input, steps=10, model_dir=tmp_path / "once", steps_per_dispatch=k)
    ten, training = run(
        make_estimator, train_input, eval_input, steps=100, model_dir=tmp_path / "ten", steps_per_dispatch=k
    )
    assert len(ten.history.evaluations) == 10
    # evaluation batches have two shapes, 16 and 8 rows
    assert ten.trace_counts == {"discovery": 1, "train": expected, "eval": 2}
    assert once.trace_counts == ten.trace_counts
    assert training.opened == 1


def test_single_steps_and_groups_are_two_executables(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    estimator, _ = run(make_estimator, train_input, eval_input, steps=13, steps_per_dispatch=5)
    assert estimator.trace_counts["train"] == 2


def test_predict_after_training_traces_once_and_stays_warm(
    make_estimator: Any, train_input: Any, eval_input: Any, data: Any
) -> None:
    estimator = make_estimator().train(train_input, steps=3)
    for _ in range(3):
        assert len(list(estimator.predict(eval_input))) == 40
    predictor = estimator.predictor()
    predictor({"x": data.x[:16]})
    predictor({"x": data.x[16:32]})
    assert estimator.trace_counts == {"discovery": 1, "train": 1, "infer": 2}  # two batch shapes


def test_training_again_traces_nothing(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator()
    for _ in range(3):
        estimator.train(train_input, steps=4)
    assert estimator.trace_counts == {"discovery": 1, "train": 1}


def test_a_ragged_batch_is_one_more_shape(make_estimator: Any, data: Any) -> None:
    ragged = ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=16, num_epochs=2, shuffle=False)
    estimator = make_estimator().train(ragged)
    assert estimator.trace_counts == {"discovery": 1, "train": 1 + (80 % 16 > 0)}


@pytest.mark.parametrize(
    "config",
    [
        {},
        *(
            pytest.param(more, marks=pytest.mark.slow)
            for more in ({"steps_per_dispatch": 4}, {"full_checkpoint_every": 3})
        ),
    ],
    ids=str,
)
def test_a_resumed_run_traces_its_step_once(
    make_estimator: Any, train_input: Any, eval_input: Any, config: Any
) -> None:
    fresh = make_estimator(save_checkpoints_steps=4, **config).train(train_input, max_steps=8)
    make_estimator(save_checkpoints_steps=4, **config).train(train_input, max_steps=16)
    forget_shared()  # as in a new process
    resumed = make_estimator(save_checkpoints_steps=4, **config)
    resumed.train(train_input, max_steps=24)
    resumed.evaluate(eval_input)
    assert resumed.trace_counts == {**fresh.trace_counts, "eval": 2}  # evaluation batches have two shapes


@pytest.mark.plugins
def test_a_warm_start_traces_its_step_once(make_estimator: Any, train_input: Any, tmp_path: Any) -> None:
    first = make_estimator(model_dir=tmp_path / "first").train(train_input, steps=4)
    config = make_estimator(model_dir=tmp_path / "warm").config
    forget_shared()
    warm = ec.Estimator(linear_model_fn, config=config, params={}, warm_start_from=first.latest_checkpoint())
    assert warm.train(train_input, steps=8).trace_counts == {"discovery": 1, "train": 1}
