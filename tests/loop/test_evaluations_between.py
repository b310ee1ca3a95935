"""`EvalSpec(every_steps=...)`: evaluations that need no checkpoint."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec
from estimator_core.checkpoint.layout import all_checkpoints
from estimator_core.errors import ArgumentError, PreemptedError


class Exporter:
    """Notes its calls."""

    name = "e"

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, bool]] = []

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> str:
        self.calls.append((int(Path(checkpoint_path).name), eval_result["global_step"], is_the_final_export))
        return export_path


def evaluated(estimator: ec.Estimator, name: str | None = None) -> list[int]:
    return [row["global_step"] for row in estimator.history.evaluations if row.get("name") == name]


def recorded(estimator: ec.Estimator) -> list[int]:
    return sorted(ec.read_eval_metrics(estimator.eval_dir()))


@pytest.fixture
def make(make_estimator: Any) -> Any:
    """An estimator with a checkpoint every ten steps."""
    return lambda **config: make_estimator(save_checkpoints_steps=10, **config)


def test_at_its_steps_and_at_checkpoints_each_once(make: Any, train_input: Any, eval_input: Any) -> None:
    exporter, estimator = Exporter(), make()
    metrics, _ = ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(train_input, max_steps=24),
        ec.EvalSpec(eval_input, every_steps=4, exporters=exporter),
    )
    assert evaluated(estimator) == [4, 8, 10, 12, 16, 20, 24]
    assert exporter.calls == [(10, 10, False), (20, 20, False), (24, 24, True)]
    assert metrics["global_step"] == 24
    assert [int(Path(path).name) for path in all_checkpoints(estimator.model_dir)] == [0, 10, 20, 24]


def test_the_values_are_those_of_a_checkpoint_at_that_step(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Path
) -> None:
    rows = []
    for name, every, saves in (("between", 5, 1000), ("saved", None, 5)):
        estimator = make_estimator(model_dir=tmp_path / name, save_checkpoints_steps=saves)
        spec = ec.EvalSpec(eval_input, every_steps=every)
        ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=23), spec)
        rows.append(ec.read_eval_metrics(estimator.eval_dir()))
    assert rows[0] == rows[1]
    assert sorted(rows[0]) == [5, 10, 15, 20, 23]


def test_each_spec_has_its_own_rhythm(make: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make()
    specs = [
        ec.EvalSpec(eval_input, name="often", every_steps=3),
        ec.EvalSpec(eval_input, name="seldom"),
    ]
    ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=12), specs)
    assert evaluated(estimator, "often") == [3, 6, 9, 10, 12]
    assert evaluated(estimator, "seldom") == [10, 12]


def test_throttle_holds_between_checkpoints_too(make: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make()
    spec = ec.EvalSpec(eval_input, every_steps=2, throttle_secs=600)
    ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=9), spec)
    assert evaluated(estimator) == [2, 9]


class StopsAt(ec.Hook):
    """Breaks a run at a step: in its first evaluation there, or behind it."""

    def __init__(self, step: int) -> None:
        self.step = step

    def begin(self, run: Any) -> None:
        self.trained = None

    def after_create(self, run: Any) -> None:
        if run.estimator._engine.live.step == self.step:
            raise RuntimeError("the evaluation fails")


def test_a_failing_evaluation_loses_nothing(make: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make()
    spec = ec.EvalSpec(eval_input, every_steps=4, hooks=[StopsAt(16)])
    with pytest.raises(RuntimeError, match="the evaluation fails"):
        ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=24), spec)
    assert Path(estimator.latest_checkpoint()).name == "16"
    again = make()
    ec.train_and_evaluate(again, ec.TrainSpec(train_input, max_steps=24), ec.EvalSpec(eval_input, every_steps=4))
    assert evaluated(again) == [20, 24]


class Interrupts(ec.Hook):
    """Asks for a stop, as the platform does, in the evaluation of a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def after_create(self, run: Any) -> None:
        import os
        import signal

        if run.estimator._engine.live.step == self.step:
            os.kill(os.getpid(), signal.SIGTERM)


def test_an_evaluation_that_was_broken_off_is_made_up_for(make: Any, train_input: Any, eval_input: Any) -> None:
    train_spec = ec.TrainSpec(train_input, max_steps=24)
    with pytest.raises(PreemptedError):
        ec.train_and_evaluate(make(), train_spec, ec.EvalSpec(eval_input, every_steps=4, hooks=[Interrupts(16)]))
    again = make()
    ec.train_and_evaluate(again, train_spec, ec.EvalSpec(eval_input, every_steps=4))
    assert evaluated(again) == [16, 20, 24]
    assert recorded(again) == [4, 8, 10, 12, 16, 20, 24]


def test_nothing_is_traced_again(make: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make()
    ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=24), ec.EvalSpec(eval_input, every_steps=1))
    assert estimator.trace_counts == {"discovery": 1, "train": 1, "eval": 2}


@pytest.mark.parametrize(("value", "error"), [(0, ArgumentError), (-1, ArgumentError), (2.5, TypeError)])
def test_what_is_no_number_of_steps_is_refused(eval_input: Any, value: Any, error: Any) -> None:
    with pytest.raises(error, match="every_steps"):
        ec.EvalSpec(eval_input, every_steps=value)


def test_where_an_evaluator_does_it_one_is_told(
    make_estimator: Any, train_input: Any, eval_input: Any, monkeypatch: Any, caplog: Any
) -> None:
    cluster = '{"cluster": {"chief": ["h:1"], "evaluator": ["h:2"]}, "task": {"type": "chief", "index": 0}}'
    monkeypatch.setenv("TF_CONFIG", cluster)
    caplog.set_level(logging.WARNING, "estimator_core")
    estimator = make_estimator(processes=None)
    ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=6), ec.EvalSpec(eval_input, every_steps=2))
    assert any("every_steps has no effect" in line for line in caplog.messages)
