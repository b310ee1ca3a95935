"""Tests of evaluation in a separate process: when it checks, what it skips, and when it ends (fault 16)."""

from __future__ import annotations

import itertools
import shutil
from typing import Any

import pytest

import estimator_core as ec
from estimator_core import _continuous_eval
from estimator_core._continuous_eval import evaluate_continuously
from estimator_core.errors import CheckpointNotFoundError


class Clock:
    """A clock that advances by sleeping. At given times, the training continues."""

    def __init__(self, events: dict[float, Any]) -> None:
        self.now, self.events = 0.0, events

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for at in sorted(at for at in self.events if at <= self.now):
            self.events.pop(at)()


def test_delay_throttle_and_the_last_step(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    trainer = make_estimator()
    clock = Clock({at: lambda: trainer.train(train_input, steps=3) for at in (5.0, 130.0, 150.0, 200.0)})
    began: list[float] = []

    def watched_input() -> Any:
        began.append(clock.now)
        return eval_input()

    evaluator = make_estimator()
    spec = ec.EvalSpec(watched_input, start_delay_secs=100, throttle_secs=60)
    results = evaluate_continuously(evaluator, [spec], max_steps=12, sleep=clock.sleep, clock=clock)
    # step 9 replaces step 6 within the sixty seconds, and the last step is evaluated at any time
    assert sorted(ec.read_eval_metrics(evaluator.eval_dir())) == [3, 9, 12]
    assert began[0] == 100.0
    assert all(later - sooner >= 60 for sooner, later in itertools.pairwise(began))
    assert results.metrics[None]["global_step"] == 12


@pytest.mark.parametrize("max_steps", [12, None])
def test_each_spec_has_its_own_throttle(
    make_estimator: Any,
    train_input: Any,
    eval_input: Any,
    monkeypatch: pytest.MonkeyPatch,
    max_steps: int | None,
) -> None:
    trainer = make_estimator()
    clock = Clock({at: lambda: trainer.train(train_input, steps=3) for at in (5.0, 70.0, 130.0, 140.0)})
    monkeypatch.setattr(_continuous_eval, "_TrainingEnded", lambda model_dir: lambda: clock.now > 150)
    evaluator = make_estimator()
    specs = [
        ec.EvalSpec(eval_input, name="often", throttle_secs=0, start_delay_secs=0),
        ec.EvalSpec(eval_input, name="seldom", throttle_secs=100, start_delay_secs=6),
    ]
    results = evaluate_continuously(evaluator, specs, max_steps=max_steps, sleep=clock.sleep, clock=clock)
    assert sorted(ec.read_eval_metrics(evaluator.eval_dir("often"))) == [0, 3, 6, 9, 12]
    # it begins at 6 with the newest step, evaluates the newest one after 100 seconds, and ends with the last step
    assert sorted(ec.read_eval_metrics(evaluator.eval_dir("seldom"))) == [3, 6, 12]
    assert {each["global_step"] for each in results.metrics.values()} == {12}
    assert clock.now < 155  # nothing follows the end of training, so no throttle delays the last evaluations


def test_a_throttled_spec_evaluates_the_newest_checkpoint_of_a_training_that_saves_no_other(
    make_estimator: Any, train_input: Any, eval_input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_estimator()
    clock = Clock({at: lambda: trainer.train(train_input, steps=3) for at in (5.0, 20.0)})
    monkeypatch.setattr(_continuous_eval, "_TrainingEnded", lambda model_dir: lambda: clock.now > 10_000)
    evaluated: dict[str, list[tuple[float, str]]] = {"often": [], "seldom": []}

    def noting(name: str) -> Any:
        def noted_input() -> Any:
            evaluated[name].append((clock.now, trainer.latest_checkpoint().rpartition("/")[2]))
            return eval_input()

        return noted_input

    specs = [
        ec.EvalSpec(noting("often"), name="often", throttle_secs=10, start_delay_secs=6),
        ec.EvalSpec(noting("seldom"), name="seldom", throttle_secs=100, start_delay_secs=6),
    ]
    evaluate_continuously(make_estimator(), specs, max_steps=None, sleep=clock.sleep, clock=clock)
    assert evaluated["often"] == [(6.0, "3"), (pytest.approx(20.0, abs=10), "6")]
    assert evaluated["seldom"] == [(6.0, "3"), (pytest.approx(106.0, abs=2), "6")]


@pytest.mark.parametrize("every", [True, False])
def test_an_evaluator_ends_if_the_last_checkpoint_is_deleted(
    make_estimator: Any,
    train_input: Any,
    eval_input: Any,
    monkeypatch: pytest.MonkeyPatch,
    every: bool,
) -> None:
    """Such as by the clean-up of a job. One spec has evaluated it, and another one waits."""
    trainer = make_estimator(keep_checkpoint_max=1)
    clock = Clock({at: lambda: trainer.train(train_input, steps=3) for at in (5.0, 20.0)})
    clock.events[40.0] = lambda: shutil.rmtree(trainer.latest_checkpoint())
    monkeypatch.setattr(_continuous_eval, "_TrainingEnded", lambda model_dir: lambda: clock.now > 50)
    evaluator = make_estimator()
    specs = [
        ec.EvalSpec(eval_input, name="often", throttle_secs=0 if every else 10, start_delay_secs=6),
        ec.EvalSpec(eval_input, name="seldom", throttle_secs=100, start_delay_secs=6),
    ]
    results = evaluate_continuously(evaluator, specs, max_steps=None, sleep=clock.sleep, clock=clock)
    assert sorted(ec.read_eval_metrics(evaluator.eval_dir("often"))) == [3, 6]
    assert sorted(ec.read_eval_metrics(evaluator.eval_dir("seldom"))) == [3]
    assert {name: each["global_step"] for name, each in results.metrics.items()} == {"often": 6, "seldom": 3}


def test_a_restarted_evaluator_continues_with_its_last_evaluation(
    make_estimator: Any, train_input: Any, eval_input: Any
) -> None:
    """Otherwise the exports of older checkpoints follow those of newer ones, and `keep` deletes the newer ones."""
    make_estimator(save_checkpoints_steps=3).train(train_input, max_steps=12).evaluate(eval_input)  # only the last one
    done: list[tuple[str, int]] = []

    class Killed(BaseException):
        """Ends the evaluator."""

    class Notes:
        name = "notes"

        def export(self, estimator: Any, path: str, checkpoint: str, metrics: Any, final: Any) -> None:
            done.append(("export", metrics["global_step"]))
            if done.count(("export", 6)) == 1 and done[-1][1] == 6:
                raise Killed

    class Kills(ec.Hook):
        def end(self, run: Any) -> None:
            step = int(run.state.clock[0])
            done.append(("evaluate", step))
            if done.count(("evaluate", 9)) == 1 and step == 9:
                raise Killed

    specs = [ec.EvalSpec(eval_input, exporters=[Notes()], hooks=[Kills()], throttle_secs=0, start_delay_secs=0)]
    for _ in range(2):
        with pytest.raises(Killed):
            evaluate_continuously(make_estimator(), specs, max_steps=12, sleep=lambda seconds: None)
    evaluate_continuously(make_estimator(), specs, max_steps=12, sleep=lambda seconds: None)
    whole = [(what, step) for step in (0, 3, 6, 9, 12) for what in ("evaluate", "export")]
    assert done == [*whole[:6], *whole[4:7], *whole[4:]]


@pytest.mark.parametrize("max_steps", [3, 6])
@pytest.mark.parametrize("name", ["first", "second"])
def test_a_checkpoint_that_the_trainer_deletes_is_passed_over(
    make_estimator: Any, train_input: Any, eval_input: Any, caplog: pytest.LogCaptureFixture, name: str, max_steps: int
) -> None:
    """If evaluations are slower than saves, the evaluator is always at the oldest checkpoint, which is deleted next.

    The training may continue beyond the max_steps of the evaluator.
    """
    trainer = make_estimator(keep_checkpoint_max=1)
    trainer.train(train_input, steps=3)

    def slow_input() -> Any:
        if trainer.latest_checkpoint().endswith("/3"):
            trainer.train(train_input, steps=3)
        return eval_input()

    specs = [ec.EvalSpec(slow_input if name == each else eval_input, name=each) for each in ("first", "second")]
    results = evaluate_continuously(make_estimator(), specs, max_steps=max_steps, sleep=lambda seconds: None)
    assert {each["global_step"] for each in results.metrics.values()} == {6}
    (told,) = [one for one in caplog.messages if "was deleted before it was evaluated and exported" in one]
    assert told.startswith(f"{trainer.model_dir}/checkpoints/3 ")


def test_a_checkpoint_of_another_run_that_an_exporter_misses_is_an_error(
    make_estimator: Any, train_input: Any, eval_input: Any
) -> None:
    """The evaluated checkpoint exists, so it is not skipped as deleted."""

    class Distilled:
        name = "distilled"

        def export(self, *arguments: Any) -> None:
            raise CheckpointNotFoundError("There is no teacher.")

    make_estimator(save_checkpoints_steps=1).train(train_input, steps=2)
    spec = ec.EvalSpec(eval_input, exporters=[Distilled()], throttle_secs=0)
    with pytest.raises(CheckpointNotFoundError, match="no teacher") as raised:
        evaluate_continuously(make_estimator(), [spec], max_steps=2, sleep=lambda seconds: None)
    assert raised.value.__notes__[0].endswith("checkpoints/0")


def test_the_last_checkpoint_without_a_newer_one_must_exist(
    make_estimator: Any, train_input: Any, eval_input: Any
) -> None:
    trainer = make_estimator(keep_checkpoint_max=1).train(train_input, steps=3)

    def slow_input() -> Any:
        shutil.rmtree(trainer.latest_checkpoint())
        return eval_input()

    with pytest.raises(CheckpointNotFoundError, match=r"There is no checkpoint in .*/checkpoints/3\."):
        evaluate_continuously(make_estimator(), [ec.EvalSpec(slow_input)], max_steps=3, sleep=lambda seconds: None)
