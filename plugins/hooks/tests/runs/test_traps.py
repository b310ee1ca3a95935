"""Traps of the loop and its hooks, each in a real run. A test name contains the number of the trap and the contract."""

import logging
import os
import signal
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.errors import EstimatorError, HookError, PreemptedError
from estimator_core.hooks import Wake
from plugins.hooks.tests import small_model


class Sees(eh.Hook):
    """Records the steps at which it is called, and the number of steps of each dispatch."""

    def __init__(self, every: int = 1) -> None:
        self._every = every
        self.steps: list[int] = []
        self.dispatches: list[int] = []

    def next_step(self, step: int) -> int | None:
        return (step // self._every + 1) * self._every

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.steps.append(step)
        self.dispatches.append(len(out.steps))


class Acts(eh.Hook):
    """Calls a function after one step."""

    def __init__(self, step: int, act: Any) -> None:
        self._step, self._act = step, act

    def next_step(self, step: int) -> int | None:
        return self._step if step < self._step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self._act(run)


def test_trap_4_a_learning_rate_of_the_trace_is_refused_and_that_of_a_schedule_is_followed(tmp_path: Path):
    def traced(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        loss = ((features["x"] @ ec.get_variable("w", (6,)) - labels) ** 2).mean()
        tx = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1 / (1.0 + loss))
        return ec.EstimatorSpec(mode, loss=loss, train_op=tx)

    with pytest.raises(EstimatorError, match="depends on an array computed inside model_fn"):
        ec.Estimator(traced, config=ec.RunConfig(model_dir=str(tmp_path / "traced"))).train(
            small_model.train_input_fn(), steps=1
        )
    estimator = small_model.make_estimator(tmp_path / "schedule", save_summary_steps=None)
    estimator.train(small_model.train_input_fn(), max_steps=40, hooks=[eh.LearningRateHook(10)])
    schedule = optax.linear_schedule(0.05, 0.001, 200)
    points = EventAccumulator(estimator.model_dir).Reload().Scalars("learning_rate")
    assert [point.step for point in points] == [1, 11, 21, 31]
    assert [point.value for point in points] == pytest.approx([float(schedule(p.step - 1)) for p in points], rel=1e-6)


def test_trap_16_hooks_of_the_spec_come_from_one_trace_and_see_the_user_s_params_unchanged(tmp_path: Path):
    made: list[Sees] = []
    begun: list[Any] = []

    class Begins(Sees):
        def begin(self, run: Any) -> None:
            begun.append(self)

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        params["seen"] = params.get("seen", 0) + 1
        assert params["seen"] == 1
        made.append(Begins())
        spec = small_model.make_model_fn()(features, labels, mode)
        return spec.replace(training_hooks=[made[-1]]) if hasattr(spec, "replace") else _with(spec, made[-1])

    params: dict[str, Any] = {}
    config = ec.RunConfig(model_dir=str(tmp_path), steps_per_dispatch=4, tf_random_seed=1)
    ec.Estimator(model_fn, config=config, params=params).train(small_model.train_input_fn(), max_steps=9)
    assert len(made) > 1  # traced for discovery and again for the step
    assert begun == made[:1]
    assert made[0].steps == list(range(1, 10))
    assert all(hook.steps == [] for hook in made[1:])
    assert params == {}


def _with(spec: Any, hook: Any) -> Any:
    import dataclasses

    return dataclasses.replace(spec, training_hooks=[hook])


def test_trap_16_a_traced_array_kept_in_a_hook_is_reported(tmp_path: Path):
    class Keeps(eh.Hook):
        def __init__(self, loss: Any) -> None:
            self.loss = loss

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        spec = small_model.make_model_fn()(features, labels, mode)
        return _with(spec, Keeps(spec.loss))

    with pytest.raises(EstimatorError, match="keeps a traced array"):
        ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(tmp_path))).train(
            small_model.train_input_fn(), steps=1
        )


def test_trap_17_hooks_of_the_call_begin_before_the_first_batch_and_those_of_the_spec_before_after_create(
    tmp_path: Path,
):
    told: list[str] = []

    class Tells(eh.Hook):
        def __init__(self, label: str) -> None:
            self._label = label

        def begin(self, run: Any) -> None:
            told.append(f"{self._label} begins")

        def after_create(self, run: Any) -> None:
            told.append(f"{self._label} is created")

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        return _with(small_model.make_model_fn()(features, labels, mode), Tells("hook of the spec"))

    def input_fn() -> Any:
        told.append("first batch")
        for _ in range(3):
            yield {"x": small_model.X[:16]}, small_model.Y[:16]

    config = ec.RunConfig(model_dir=str(tmp_path), prefetch=0)
    ec.Estimator(model_fn, config=config).train(input_fn, hooks=[Tells("hook of the call")])
    assert told == [
        "hook of the call begins",
        "first batch",
        "hook of the spec begins",
        "hook of the call is created",
        "hook of the spec is created",
    ]


def test_trap_20_a_name_that_one_batch_shape_lacks_is_skipped_with_one_warning_and_an_unknown_one_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        if features["x"].shape[0] == 16:
            ec.summary.scalar("of_whole_batches", jnp.mean(features["x"]))
        return small_model.make_model_fn()(features, labels, mode)

    def input_fn() -> Any:
        for size in (16, 16, 7, 16, 7, 16):
            yield {"x": small_model.X[:size]}, small_model.Y[:size]

    def train(name: str, folder: str) -> None:
        hooks = [eh.LoggingTensorHook([name, "step"], every_n_iter=1), eh.HistoryHook(1)]
        config = ec.RunConfig(model_dir=str(tmp_path / folder), log_step_count_steps=None)
        ec.Estimator(model_fn, config=config).train(input_fn, hooks=hooks)

    train("of_whole_batches", "ragged")
    warnings = [
        record.getMessage() for record in caplog.records if " has no output 'of_whole_batches'" in record.getMessage()
    ]
    assert len([warning for warning in warnings if "LoggingTensorHook" in warning]) == 1
    lines = [record.getMessage() for record in caplog.records if "step = " in record.getMessage()]
    assert ["of_whole_batches" in line for line in lines] == [True, True, False, True, False, True]
    rows = eh.read_history(tmp_path / "ragged")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert ["of_whole_batches" in row and row["of_whole_batches"] is not None for row in rows] == [
        True, True, False, True, False, True,
    ]  # fmt: skip
    with pytest.raises(HookError, match="Did you mean 'of_whole_batches'"):
        train("of_whole_batch", "unknown")


def test_trap_25_a_hook_that_wants_values_forces_no_boundary(tmp_path: Path):
    sees = Sees(60)
    estimator = small_model.make_estimator(
        tmp_path,
        steps_per_dispatch=20,
        save_checkpoints_steps=60,
        save_summary_steps=None,
        log_step_count_steps=None,
        default_hooks=False,  # the progress bar needs the first step
    )
    hooks = [eh.HistoryHook(1), eh.Hook(), eh.FeedFnHook(lambda features, labels: (features, labels)), sees]
    estimator.train(small_model.train_input_fn(), max_steps=120, hooks=hooks)
    assert sees.dispatches == [20, 20]
    assert [row["step"] for row in eh.read_history(tmp_path)] == list(range(1, 121))


def test_trap_25_a_hook_of_cadence_7_keeps_groups_of_5_and_is_named_where_it_prevents_groups_of_20(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    settings: dict[str, Any] = {
        "save_checkpoints_steps": 70, "save_summary_steps": None, "log_step_count_steps": None,
    }  # fmt: skip
    seven = Sees(7)
    small_model.make_estimator(tmp_path / "5", steps_per_dispatch=5, **settings).train(
        small_model.train_input_fn(), max_steps=140, hooks=[seven, eh.HistoryHook(1)]
    )
    assert seven.steps == list(range(7, 141, 7))
    assert [row["step"] for row in eh.read_history(tmp_path / "5")] == list(range(1, 141))
    estimator = small_model.make_estimator(tmp_path / "20", steps_per_dispatch=20, **settings)
    estimator.train(small_model.train_input_fn(), max_steps=140, hooks=[Sees(7)])
    assert estimator.trace_counts["train"] == 1  # the group of 20 never ran
    (line,) = [r.getMessage() for r in caplog.records if "steps_per_dispatch=20 has little effect" in r.getMessage()]
    assert "hook Sees from" in line
    assert "wants control again after 7 steps" in line


@pytest.mark.parametrize("k", [1, 8])
def test_trap_26_a_stop_acts_at_the_end_of_the_dispatch_and_next_step_gives_an_exact_one(tmp_path: Path, k: int):
    seen: dict[str, Any] = {}

    class Looks(Sees):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            seen["last"], seen["all"] = np.shape(out["loss"]), np.shape(out.all("loss"))
            seen["same"] = float(out["loss"]) == float(out.all("loss")[-1])

    class StopsInValues(eh.Hook):
        def begin(self, run: Any) -> None:
            run.follow("loss")

        def on_values(self, run: Any, steps: range, values: Any) -> None:
            if 19 in steps:
                run.request_stop("seen 19")

    settings: dict[str, Any] = {
        "save_checkpoints_steps": 1000, "save_summary_steps": None, "log_step_count_steps": None,
    }  # fmt: skip
    estimator = small_model.make_estimator(tmp_path / "a", steps_per_dispatch=k, **settings)
    estimator.train(small_model.train_input_fn(), max_steps=64, hooks=[Looks(16), StopsInValues()])
    assert seen == {"last": (), "all": (k,), "same": True}
    assert estimator.latest_checkpoint().endswith("/32")  # the boundary after step 19
    exact = small_model.make_estimator(tmp_path / "b", steps_per_dispatch=k, **settings)
    exact.train(small_model.train_input_fn(), max_steps=64, hooks=[Acts(19, lambda run: run.request_stop("19"))])
    assert exact.latest_checkpoint().endswith("/19")


def test_trap_27_the_clock_is_looked_at_once_a_dispatch_and_the_rate_counts_completed_steps(tmp_path: Path):
    asked: list[int] = []

    class Clocked(Sees):
        def next_step(self, step: int) -> Any:
            asked.append(step)
            return Wake(time=0.0)

    clocked = Clocked()
    estimator = small_model.make_estimator(
        tmp_path, steps_per_dispatch=10, save_checkpoints_steps=1000, save_summary_steps=None, log_step_count_steps=20
    )
    hooks = [clocked, eh.ThroughputHook(20)]
    estimator.train(small_model.train_input_fn(), max_steps=40, hooks=hooks)
    # Its wake time has always passed, so it is called at the end of the dispatch that follows.
    assert clocked.steps[0] == 1
    assert asked == [0, *clocked.steps]  # once after each call, and never between
    assert len(clocked.steps) <= 40
    assert set(clocked.dispatches) == {1}  # its time may come at any step of a group
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [event.step for event in events.Scalars("global_step/sec")] == [21]


@pytest.mark.parametrize("at", [33, 40, 57])
def test_trap_28_a_preemption_shifts_no_cadence(tmp_path: Path, at: int):
    def run(folder: str, *, preempt: bool = False, max_steps: int = 75) -> ec.Estimator:
        estimator = small_model.make_estimator(tmp_path / folder, save_summary_steps=9, log_step_count_steps=9)
        stop = eh.stop_if_no_decrease_hook(estimator, "loss", 1000, run_every_steps=7)
        interrupt = Acts(at, lambda run: os.kill(os.getpid(), signal.SIGTERM))
        ec.train_and_evaluate(
            estimator,
            ec.TrainSpec(
                small_model.train_input_fn(),
                max_steps=max_steps,
                hooks=[stop, eh.LearningRateHook(8), eh.HistoryHook(5), *([interrupt] if preempt else [])],
            ),
            ec.EvalSpec(small_model.eval_input_fn()),
        )
        return estimator

    straight = run("straight")
    with pytest.raises(PreemptedError):
        run("preempted", preempt=True)
    assert ec.latest_checkpoint(str(tmp_path / "preempted")).endswith(f"/{at}")
    resumed = run("preempted")
    assert ec.read_eval_metrics(resumed.eval_dir()) == ec.read_eval_metrics(straight.eval_dir())
    for tag in ("loss", "learning_rate"):
        points = [
            [(event.step, event.value) for event in EventAccumulator(str(tmp_path / folder)).Reload().Scalars(tag)]
            for folder in ("straight", "preempted")
        ]
        assert points[0] == points[1]
    assert eh.read_history(tmp_path / "preempted") == eh.read_history(tmp_path / "straight")
    # A new call starts a new cadence, although the last one ended on an extra step.
    again = run("preempted", max_steps=100)
    steps = [event.step for event in EventAccumulator(again.model_dir).Reload().Scalars("loss")]
    assert [step for step in steps if step > 75] == [76, 85, 94]
    assert list(ec.read_eval_metrics(again.eval_dir())) == [20, 40, 60, 75, 95, 100]
