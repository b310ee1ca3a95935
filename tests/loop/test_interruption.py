"""SIGTERM during training: what is saved, and that it moves no later save or evaluation (traps 28 and 38)."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

import estimator_core as ec
from estimator_core.errors import PreemptedError


class Terminate(ec.Hook):
    def __init__(self, at: int) -> None:
        self.at = at

    def next_step(self, step: int) -> int | None:
        return self.at if step < self.at else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def evaluated(estimator: ec.Estimator) -> list[int]:
    return sorted(ec.read_eval_metrics(estimator.eval_dir()))


@pytest.mark.parametrize("began_at", [0, 3])
def test_the_cadence_is_that_of_the_uninterrupted_call(
    make_estimator: Any, train_input: Any, eval_input: Any, steps_saved: Any, began_at: int
) -> None:
    def run(max_steps: int, hooks: Any = ()) -> ec.Estimator:
        estimator = make_estimator(keep_checkpoint_max=None)
        spec = ec.TrainSpec(train_input, max_steps=max_steps, hooks=hooks)
        ec.train_and_evaluate(estimator, spec, ec.EvalSpec(eval_input))
        return estimator

    before = sorted({0, began_at})
    if began_at:
        run(began_at)
    with pytest.raises(PreemptedError, match="saved at step 7") as raised:
        run(30, [Terminate(7)])
    assert raised.value.step == 7
    estimator = run(30)
    cadence = [10, 20, 30] if began_at == 0 else [13, 23, 30]
    assert steps_saved(estimator) == [*before, 7, *cadence]
    assert evaluated(estimator) == [step for step in before if step] + cadence
    # a call that follows a completed one starts a new cadence
    assert steps_saved(run(45)) == [*before, 7, *cadence, 40, 45]


def test_interrupted_and_resumed_gives_the_same_bits(make_estimator: Any, train_input: Any, tmp_path: Any) -> None:
    whole = make_estimator(model_dir=tmp_path / "whole", prefetch=3).train(train_input, max_steps=20)
    with pytest.raises(PreemptedError):
        make_estimator(prefetch=3).train(train_input, hooks=[Terminate(13)], max_steps=20)
    resumed = make_estimator(prefetch=3).train(train_input, max_steps=20)
    assert all((resumed.variables[name] == value).all() for name, value in whole.variables.items())
