"""Tests of `EvalSpec(every_steps=...)`: evaluations that need no checkpoint."""

from __future__ import annotations

import json
import logging
import re
import time
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import estimator_core as ec
from estimator_core._checkpoint.catalog import all_checkpoints
from estimator_core.errors import ArgumentError, PreemptedError


class Exporter:
    """Records its calls."""

    name: str

    def __init__(self, name: str = "e") -> None:
        self.name = name
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
    """Makes an estimator that saves a checkpoint every ten steps."""
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
    """Breaks a run at a step: in its first evaluation there, or after it."""

    def __init__(self, step: int) -> None:
        self.step = step

    def begin(self, run: Any) -> None:
        self.trained = None

    def after_create(self, run: Any) -> None:
        if run.estimator._state.step == self.step:
            raise RuntimeError("the evaluation fails")


def test_a_failing_evaluation_loses_nothing(make: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make()
    spec = ec.EvalSpec(eval_input, every_steps=4, hooks=[StopsAt(16)])
    with pytest.raises(RuntimeError, match="the evaluation fails"):
        ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=24), spec)
    assert Path(estimator.latest_checkpoint()).name == "16"
    again = make()
    ec.train_and_evaluate(again, ec.TrainSpec(train_input, max_steps=24), ec.EvalSpec(eval_input, every_steps=4))
    assert evaluated(again) == [16, 20, 24]
    assert recorded(again) == [4, 8, 10, 12, 16, 20, 24]


class Interrupts(ec.Hook):
    """Requests a stop in the evaluation of a step, as the platform does."""

    def __init__(self, step: int) -> None:
        self.step = step

    def after_create(self, run: Any) -> None:
        import os
        import signal

        if run.estimator._state.step == self.step:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("every", "step"), [(None, 10), (5, 5), (None, 20)], ids=["at a checkpoint", "between", "at the end"]
)
@pytest.mark.parametrize(("breaks", "error"), [(StopsAt, RuntimeError), (Interrupts, PreemptedError)])
def test_of_several_evaluations_only_those_that_are_missing_are_made_up(
    make: Any, train_input: Any, eval_input: Any, breaks: Any, error: Any, every: int | None, step: int
) -> None:
    """The second of three fails or is interrupted. Their exporters run once, as without a fault."""
    exporters = [Exporter(name) for name in ("e", "f", "g")]

    def run(*hooks: ec.Hook) -> ec.Estimator:
        estimator, (first, second, third) = make(), exporters
        specs = [
            ec.EvalSpec(eval_input, name="first", every_steps=every, exporters=first),
            ec.EvalSpec(eval_input, name="second", every_steps=every, exporters=second, hooks=hooks),
            ec.EvalSpec(eval_input, name="third", every_steps=every, exporters=third),
        ]
        ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=20), specs)
        return estimator

    with pytest.raises(error):
        run(breaks(step))
    again = run()
    expected = [5, 10, 15, 20] if every else [10, 20]
    assert evaluated(again, "first") == [one for one in expected if one > step]
    for name in ("first", "second", "third"):
        assert name == "first" or evaluated(again, name) == [one for one in expected if one >= step]
        assert sorted(ec.read_eval_metrics(again.eval_dir(name))) == expected
        shown = EventAccumulator(again.eval_dir(name)).Reload().Scalars("loss")
        assert [event.step for event in shown] == expected
    for exporter in exporters:
        assert exporter.calls == [(10, 10, False), (20, 20, True)]
    ended = json.loads(Path(again.model_dir, "run.json").read_text())["ended"]
    assert ended == {"step": 20, "reason": "reached step 20", "failed": False}


def test_an_evaluation_that_was_broken_off_is_made_up_for(make: Any, train_input: Any, eval_input: Any) -> None:
    train_spec = ec.TrainSpec(train_input, max_steps=24)
    with pytest.raises(PreemptedError):
        ec.train_and_evaluate(make(), train_spec, ec.EvalSpec(eval_input, every_steps=4, hooks=[Interrupts(16)]))
    again = make()
    ec.train_and_evaluate(again, train_spec, ec.EvalSpec(eval_input, every_steps=4))
    assert evaluated(again) == [16, 20, 24]
    assert recorded(again) == [4, 8, 10, 12, 16, 20, 24]


def test_what_is_broken_off_at_a_checkpoint_is_exported_when_it_is_made_up_for(
    make: Any, train_input: Any, eval_input: Any
) -> None:
    train_spec, exporter = ec.TrainSpec(train_input, max_steps=24), Exporter()

    def run(estimator: ec.Estimator, *hooks: ec.Hook) -> None:
        spec = ec.EvalSpec(eval_input, every_steps=5, exporters=exporter, hooks=hooks)
        ec.train_and_evaluate(estimator, train_spec, spec)

    with pytest.raises(PreemptedError):
        run(make(), Interrupts(10))  # step 10 has a checkpoint, and `every_steps` names it
    assert exporter.calls == []
    again = make()
    run(again)
    assert evaluated(again) == [10, 15, 20, 24]
    assert exporter.calls == [(10, 10, False), (20, 20, False), (24, 24, True)]


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


class SlowSteps(ec.Hook):
    """Makes every step take a while."""

    def after_step(self, run: Any, step: int, out: Any) -> None:
        time.sleep(0.01)


def test_what_is_evaluated_between_keeps_no_checkpoint_from_its_exports(
    make: Any, train_input: Any, eval_input: Any
) -> None:
    """Checkpoints are a tenth of a second apart, evaluations between them a hundredth."""
    exporter, estimator = Exporter(), make()
    spec = ec.EvalSpec(eval_input, every_steps=1, throttle_secs=0.09, exporters=exporter)
    ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, hooks=[SlowSteps()], max_steps=45), spec)
    assert [step for step, _, _ in exporter.calls] == [10, 20, 30, 40, 45]


class StopAt(ec.Hook):
    """Requests a stop at a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def next_step(self, step: int) -> int | None:
        return self.step if step < self.step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        run.request_stop("enough")


def test_the_last_step_is_evaluated_once_however_training_ends(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Path
) -> None:
    stopped = make_estimator(model_dir=tmp_path / "stopped")
    train_spec = ec.TrainSpec(train_input, hooks=[StopAt(8)], max_steps=100)
    exporter = Exporter()
    ec.train_and_evaluate(stopped, train_spec, ec.EvalSpec(eval_input, every_steps=4, exporters=exporter))
    assert evaluated(stopped) == [4, 8]
    assert exporter.calls == [(8, 8, False), (8, 8, True)]
    assert list(ec.read_eval_metrics(stopped.eval_dir(), with_checkpoint=True)) == [8]
    ended = make_estimator(model_dir=tmp_path / "ended")
    ec.train_and_evaluate(ended, ec.TrainSpec(eval_input), ec.EvalSpec(eval_input, every_steps=3))
    assert evaluated(ended) == [3]


def test_only_what_was_broken_off_is_made_up_for(make: Any, train_input: Any, eval_input: Any) -> None:
    train_spec, exporter = ec.TrainSpec(train_input, max_steps=24), Exporter()

    def specs(hooks: Any) -> list[ec.EvalSpec]:
        often = ec.EvalSpec(eval_input, name="often", every_steps=4, exporters=exporter, hooks=hooks)
        return [often, ec.EvalSpec(eval_input, name="seldom")]

    with pytest.raises(PreemptedError):
        ec.train_and_evaluate(make(), train_spec, specs([Interrupts(16)]))
    again = make()
    ec.train_and_evaluate(again, train_spec, specs([]))
    assert evaluated(again, "often") == [16, 20, 24]
    assert evaluated(again, "seldom") == [20, 24]
    assert [step for step, _, _ in exporter.calls] == [10, 20, 24]


class Dies(ec.Hook):
    """Ends the run with an error at a step, so that no checkpoint of this step exists."""

    def __init__(self, step: int) -> None:
        self.step = step

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step == self.step:
            raise RuntimeError("killed")


def test_results_behind_the_step_a_run_goes_on_from_do_not_count(make: Any, train_input: Any, eval_input: Any) -> None:
    with pytest.raises(RuntimeError, match="killed"):
        ec.train_and_evaluate(
            make(),
            ec.TrainSpec(train_input, hooks=[Dies(18)], max_steps=30),
            ec.EvalSpec(eval_input, every_steps=4),
        )
    assert recorded(make()) == [4, 8, 10, 12, 16]
    again = make()
    ec.train_and_evaluate(
        again, ec.TrainSpec(train_input, max_steps=14), ec.EvalSpec(eval_input, every_steps=4, throttle_secs=600)
    )
    assert recorded(again) == [4, 8, 10, 12, 14]
    shown = EventAccumulator(again.eval_dir()).Reload().Scalars("loss")
    assert [event.step for event in shown] == [4, 8, 10, 12, 14]


def test_results_without_a_checkpoint_can_be_left_out(make: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make()
    ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=24), ec.EvalSpec(eval_input, every_steps=4))
    assert sorted(ec.read_eval_metrics(estimator.eval_dir(), with_checkpoint=True)) == [10, 20, 24]


class Evaluates(ec.Hook):
    """Evaluates at every third step, as a hook of a user may. At one step it then changes the weights."""

    def __init__(self, input_fn: Any, moves_at: int | None = None) -> None:
        self.input_fn, self.moves_at = input_fn, moves_at

    def next_step(self, step: int) -> int:
        return (step // 3 + 1) * 3

    def after_step(self, run: Any, step: int, out: Any) -> None:
        run.estimator.evaluate(self.input_fn, name="own")
        if step == self.moves_at:
            run.assign({"w": run.state.variables["w"] + 1.0})


@pytest.mark.parametrize(("moves_at", "held"), [(None, [6, 12, 15]), (12, [6, 15])])
def test_a_result_of_the_very_values_a_checkpoint_holds_is_one_of_it(
    make_estimator: Any, train_input: Any, eval_input: Any, moves_at: int | None, held: list[int]
) -> None:
    estimator = make_estimator(save_checkpoints_steps=6)
    hooks = [Evaluates(eval_input, moves_at), StopAt(15)]
    estimator.train(train_input, hooks=hooks, max_steps=100)
    directory = estimator.eval_dir("own")
    assert list(ec.read_eval_metrics(directory)) == [3, 6, 9, 12, 15]
    assert list(ec.read_eval_metrics(directory, with_checkpoint=True)) == held
    make_estimator(save_checkpoints_steps=6).train(train_input, max_steps=16)  # from the journal, in another process
    assert list(ec.read_eval_metrics(directory, with_checkpoint=True)) == held


class RecordedAtSaves(ec.CheckpointListener):
    """Records the steps that are evaluated before each checkpoint is saved."""

    def __init__(self, eval_dir: str) -> None:
        self.eval_dir = eval_dir
        self.seen: dict[int, list[int]] = {}

    def before_save(self, run: Any, step: int) -> None:
        self.seen[step] = sorted(ec.read_eval_metrics(self.eval_dir))


@pytest.mark.parametrize("stops", [False, True])
def test_no_throttle_keeps_the_last_step_from_its_evaluation_before_the_save(
    make: Any, train_input: Any, eval_input: Any, stops: bool
) -> None:
    estimator = make()
    listener = RecordedAtSaves(estimator.eval_dir())
    train_spec = ec.TrainSpec(
        train_input, max_steps=100 if stops else 24, hooks=[StopAt(24)], saving_listeners=[listener]
    )
    ec.train_and_evaluate(estimator, train_spec, ec.EvalSpec(eval_input, throttle_secs=600))
    assert listener.seen == {0: [], 10: [10], 20: [10], 24: [10, 24]}


def test_what_fails_beside_training_is_named(make: Any, train_input: Any, eval_input: Any) -> None:
    class Broken(Exporter):
        def export(self, *arguments: Any) -> str:
            raise ZeroDivisionError("broken")

    def broken_input() -> Any:
        raise ZeroDivisionError("broken")

    class BrokenLater(Exporter):
        def export(self, *arguments: Any) -> None:
            pass

        def wait(self) -> None:
            raise ZeroDivisionError("broken")

    exporting, late = ec.EvalSpec(eval_input, exporters=[Broken()]), ec.EvalSpec(broken_input, name="late")
    background = ec.EvalSpec(eval_input, exporters=[BrokenLater()])
    for steps, spec, place in (
        (1, background, r"in exporter \S*BrokenLater from .* \(e\), wait$"),
        (1, exporting, r"in exporter \S*Broken from .* \(e\), export of .*checkpoints.1$"),
        (2, late, "in the evaluation 'late' of its EvalSpec$"),
    ):
        with pytest.raises(ZeroDivisionError, match="broken") as raised:
            ec.train_and_evaluate(make(), ec.TrainSpec(train_input, max_steps=steps), spec)
        (note,) = raised.value.__notes__
        assert re.match(place, note)
