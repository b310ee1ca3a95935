"""Tests of the early-stopping hooks on recorded evaluations: cadence, names, errors, resume."""

import inspect
import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import estimator_hooks as eh
from estimator_core.errors import ArgumentError, HookError
from estimator_core.hooks import Wake
from estimator_core.summaries import append_eval_metrics
from estimator_core.testing import FakeRun, drive
from estimator_hooks.early_stopping import best_weights
from estimator_hooks.early_stopping.best_weights import BestWeights


@pytest.fixture
def estimator(tmp_path: Path) -> Any:
    return SimpleNamespace(eval_dir=lambda name=None: str(tmp_path / (f"eval_{name}" if name else "eval")))


def record(estimator: Any, values: dict[int, float], name: str | None = None, metric: str = "loss") -> None:
    for step, value in values.items():
        append_eval_metrics(estimator.eval_dir(name), step, {metric: value, "other": 0.0}, None)


class EvaluatesEvery:
    """A hook that records an evaluation at the steps where a training run would evaluate."""

    def __new__(cls, estimator: Any, every: int, loss: Callable[[int], float], name: str | None = None) -> Any:
        class Evaluates(eh.Hook):
            def next_step(self, step: int) -> int:
                return (step // every + 1) * every

            def after_step(self, run: Any, step: int, out: Any) -> None:
                record(estimator, {step: loss(step)}, name)

        return Evaluates()


def test_stops_at_the_first_look_after_the_reason(estimator: Any):
    hook = eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_steps=5)
    run = drive([EvaluatesEvery(estimator, 10, lambda step: 10 / step), hook], steps=100)
    assert run.step == 31  # evaluated at 30, checked at 1, 6, ... 26, 31
    assert run.stop_reason == "early stopping: loss = 0.333333 at step 30, lower than 0.5"


@pytest.mark.parametrize("k", [1, 7, 50])
def test_no_look_is_missed_with_several_steps_per_dispatch(estimator: Any, k: int):
    hook = eh.stop_if_no_decrease_hook(estimator, "loss", 20, run_every_steps=5)
    evaluates = EvaluatesEvery(estimator, 10, lambda step: abs(step - 30.0))
    assert drive([evaluates, hook], steps=200, steps_per_dispatch=k).step == 51


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (eh.stop_if_higher_hook, 0.6),
        (eh.stop_if_lower_hook, 0.5),
        (eh.stop_if_no_increase_hook, 500),
        (eh.stop_if_no_decrease_hook, 500),
    ],
)
def test_each_of_the_family_with_run_every_steps_alone(estimator: Any, make: Callable[..., Any], argument: float):
    rising = make in (eh.stop_if_higher_hook, eh.stop_if_no_increase_hook)
    values = {1000: 0.5, 2000: 0.6, 3000: 0.7, 3500: 0.68} if rising else {1000: 0.8, 2000: 0.7, 3000: 0.4, 3500: 0.41}
    record(estimator, values)
    run = drive([make(estimator, "loss", argument, run_every_steps=1)], steps=10, run=FakeRun(step=3500))
    assert run.step == 3500  # before the first step
    run = drive(
        [make(estimator, "loss", argument, min_steps=4000, run_every_steps=1)], steps=10, run=FakeRun(step=3500)
    )
    assert run.stop_reason is None


@pytest.mark.parametrize(
    "function",
    [eh.stop_if_higher_hook, eh.stop_if_lower_hook, eh.stop_if_no_increase_hook, eh.stop_if_no_decrease_hook],
)
def test_signatures_are_those_of_tf_estimator(function: Callable[..., Any]):
    third = {"stop_if_higher_hook": "threshold", "stop_if_lower_hook": "threshold"}.get(
        function.__name__, function.__name__.replace("stop_if_no", "max_steps_without").removesuffix("_hook")
    )
    positional = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == [
        "estimator",
        "metric_name",
        third,
        "eval_dir",
        "min_steps",
        "run_every_secs",
        "run_every_steps",
    ]


def test_named_evaluation(estimator: Any):
    record(estimator, {10: 0.1}, name="val")
    hook = eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_steps=1, eval_name="val")
    assert drive([hook], steps=100, run=FakeRun(step=10)).step == 10
    by_directory = eh.stop_if_lower_hook(estimator, "loss", 0.5, estimator.eval_dir("val"), run_every_steps=1)
    assert drive([by_directory], steps=100, run=FakeRun(step=10)).step == 10


def test_a_forgotten_name_is_pointed_out_once(estimator: Any, caplog: pytest.LogCaptureFixture):
    record(estimator, {5: 0.2, 10: 0.1}, name="val")
    run = drive([eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_steps=1)], steps=3, run=FakeRun(step=10))
    assert run.stop_reason is None
    (warning,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "evaluations exist in eval_val" in warning
    assert "eval_name='x'" in warning


def test_before_the_first_evaluation_nothing_happens(estimator: Any, caplog: pytest.LogCaptureFixture):
    hook = eh.stop_if_no_decrease_hook(estimator, "loss", 5, run_every_steps=1)
    assert drive([hook], steps=20).step == 20
    assert not caplog.records


def test_unknown_metric_names_those_that_exist(estimator: Any):
    record(estimator, {10: 0.1})
    hook = eh.stop_if_lower_hook(estimator, "los", 0.5, run_every_steps=1)
    with pytest.raises(
        HookError, match=r"has no metric 'los'\. Did you mean 'loss'\? It has: \['loss', 'other'\]"
    ) as raised:
        drive([hook], steps=3, run=FakeRun(step=10))
    assert any("MetricStoppingHook from" in note and "after_create" in note for note in raised.value.__notes__)


def test_a_metric_that_came_later_is_no_error(estimator: Any):
    record(estimator, {10: 0.1}, metric="old")
    record(estimator, {20: 0.2})
    hook = eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_steps=1)
    assert "at step 20" in str(drive([hook], steps=3, run=FakeRun(step=20)).stop_reason)


def test_a_metric_that_is_no_number(estimator: Any):
    append_eval_metrics(estimator.eval_dir(), 10, {"loss": [1.0, 2.0]}, None)
    with pytest.raises(HookError, match="not a single number"):
        drive([eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_steps=1)], steps=3, run=FakeRun(step=10))


def test_evaluations_ahead_of_the_run_do_not_count(estimator: Any):
    """A killed run wrote them after the checkpoint from which this run continues."""
    record(estimator, {100: 0.1})
    hook = eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_steps=1)
    assert drive([hook], steps=20, run=FakeRun(step=50)).stop_reason is None


def test_evaluations_of_earlier_calls_count(estimator: Any):
    record(estimator, {100: 0.1})
    hook = eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_steps=1)
    assert drive([hook], steps=20, run=FakeRun(step=200)).step == 200


@pytest.mark.parametrize("killed", [4, 25, 30, 33])
@pytest.mark.parametrize("evaluations_survive", [True, False])
def test_a_resumed_run_decides_as_an_uninterrupted_one(tmp_path: Path, killed: int, evaluations_survive: bool):
    def parts(folder: str) -> tuple[Any, list[Any]]:
        estimator = SimpleNamespace(eval_dir=lambda name=None: str(tmp_path / folder / "eval"))
        hook = eh.stop_if_no_decrease_hook(estimator, "loss", 20, run_every_steps=7)
        return estimator, [EvaluatesEvery(estimator, 10, lambda step: abs(step - 20.0)), hook]

    straight = drive(parts("straight")[1], steps=100)
    estimator, hooks = parts("killed")
    drive(hooks, steps=killed)
    states = [json.loads(json.dumps(hook.state())) for hook in hooks]
    if not evaluations_survive:
        Path(estimator.eval_dir(), "metrics.jsonl").unlink(missing_ok=True)
    resumed = drive(parts("killed")[1], steps=100 - killed, run=FakeRun(step=killed), resume=states)
    assert (resumed.step, resumed.stop_reason) == (straight.step, straight.stop_reason)


def test_a_stop_is_not_remembered_for_the_next_call(estimator: Any):
    record(estimator, {10: 0.1})
    hook = eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_steps=1)
    drive([hook], steps=5, run=FakeRun(step=10))
    assert "stop" not in json.dumps(hook.state())


def test_can_be_added_to_a_resumed_run(estimator: Any):
    record(estimator, {10: 0.1})
    hook = eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_steps=1)
    run = FakeRun(step=10)
    drive([eh.Hook(), hook], steps=5, run=run, resume=[{}])
    assert run.step == 11  # a resumed call decides at the steps of an uninterrupted one


def test_make_early_stopping_hook(estimator: Any):
    answers = iter([False, False, True])
    hook = eh.make_early_stopping_hook(estimator, lambda: next(answers), run_every_steps=10)
    run = drive([hook], steps=100)
    assert run.step == 21
    assert str(run.stop_reason).startswith("early stopping at step 21")


def test_seconds_are_the_default(estimator: Any):
    hook = eh.make_early_stopping_hook(estimator, lambda: False)
    drive([hook], steps=1)
    wake = hook.next_step(1)
    assert isinstance(wake, Wake)
    assert wake.step is None
    assert wake.time is not None
    assert set(hook.state()) == {"last_step", "elapsed_secs"}


def test_make_stop_at_checkpoint_step_hook(estimator: Any):
    hook = eh.make_stop_at_checkpoint_step_hook(estimator, 7)
    assert drive([hook], steps=100, steps_per_dispatch=5).step == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"run_every_secs": 1.0, "run_every_steps": 1},
            "Only one of `run_every_secs` and `run_every_steps` must be set.",
        ),
        ({"eval_dir": "x", "eval_name": "y"}, "Only one of `eval_dir` and `eval_name` must be set."),
        ({"run_every_steps": 0}, "^MetricStoppingHook: run_every_steps must be at least 1"),
        ({"run_every_secs": float("nan")}, "^MetricStoppingHook: run_every_secs must be > 0, given: nan"),
    ],
)
def test_refused(estimator: Any, arguments: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        eh.stop_if_lower_hook(estimator, "loss", 0.5, **arguments)


def test_no_estimator():
    with pytest.raises(TypeError, match=r"`estimator` must have type `estimator_core.Estimator`\. Got: <class 'str'>"):
        eh.stop_if_lower_hook("runs/x", "loss", 0.5)
    with pytest.raises(TypeError, match="`should_stop_fn` must be callable"):
        eh.make_early_stopping_hook(SimpleNamespace(eval_dir=str), "yes")  # type: ignore[arg-type]
    for steps in (0, float("nan")):
        with pytest.raises(ArgumentError, match=f"max_steps_without_decrease must be > 0, given: {steps}"):
            eh.stop_if_no_decrease_hook(SimpleNamespace(eval_dir=str), "loss", steps)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="max_steps_without_increase must be > 0, given: 0"):
        eh.stop_if_no_increase_hook(SimpleNamespace(eval_dir=str), "loss", 0)


@pytest.mark.parametrize("begins_after", [0.0, 0.2])
def test_weights_whose_checkpoint_is_still_being_written_are_waited_for(tmp_path: Path, begins_after: float):
    checkpoints, kept = tmp_path / "checkpoints", BestWeights(tmp_path)
    checkpoints.mkdir()

    def commit() -> None:
        time.sleep(begins_after)
        draft = checkpoints / ".writing-30-0"
        draft.mkdir()
        (draft / "weights").write_text("30")
        time.sleep(0.3)
        draft.rename(checkpoints / "30")

    thread = threading.Thread(target=commit)
    thread.start()
    assert kept._keep_when_written(30)
    thread.join()
    assert (tmp_path / "best_weights" / "30" / "weights").read_text() == "30"


def test_only_the_best_is_kept_and_what_is_gone_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(best_weights, "_START_SECS", 0.1)
    kept = BestWeights(tmp_path)
    for step in (10, 20):
        (tmp_path / "checkpoints" / str(step)).mkdir(parents=True)
        assert kept.keep(step)
    assert kept.kept_step() == 20
    assert [path.name for path in (tmp_path / "best_weights").iterdir()] == ["20"]
    assert not kept._keep_when_written(30)
    assert kept.kept_step() == 20


def test_the_best_weights_of_several_processes_at_a_url_are_refused_at_once(
    estimator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = eh.stop_if_no_decrease_hook(estimator, "loss", 10, run_every_steps=5, restore_best=True)
    run: Any = SimpleNamespace(
        config=SimpleNamespace(model_dir="s3://bucket/run", is_chief=True), step=0, resumed=False
    )
    monkeypatch.setattr("jax.process_count", lambda: 2)
    with pytest.raises(HookError, match=r"restore_best: s3://bucket/run is a URL"):
        hook.after_create(run)
