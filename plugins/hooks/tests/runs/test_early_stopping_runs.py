"""Tests of early stopping in real runs: named evaluations, restore_best, kill and resume."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.errors import HookError
from estimator_core.summaries import append_eval_metrics
from plugins.hooks.tests import small_model


def train_and_evaluate(estimator: ec.Estimator, hooks: list[Any], max_steps: int, name: str | None = None) -> Any:
    return ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(small_model.train_input_fn(), max_steps=max_steps, hooks=hooks),
        ec.EvalSpec(small_model.eval_input_fn(), name=name),
    )


def test_stops_on_a_named_evaluation(tmp_path: Path):
    estimator = small_model.make_estimator(tmp_path)
    hook = eh.stop_if_higher_hook(estimator, "accuracy", 0.3, run_every_steps=10, eval_name="val")
    metrics, _ = train_and_evaluate(estimator, [hook], 400, name="val")
    assert metrics["global_step"] < 400
    assert metrics["global_step"] % 10 == 1
    assert str(estimator.stop_reason).startswith("early stopping: accuracy = ")


def test_unknown_metric_in_a_run(tmp_path: Path):
    estimator = small_model.make_estimator(tmp_path)
    hook = eh.stop_if_higher_hook(estimator, "acuracy", 0.3, run_every_steps=10)
    with pytest.raises(HookError, match="Did you mean 'accuracy'"):
        train_and_evaluate(estimator, [hook], 100)


class SpoilsWeights(eh.Hook):
    """Changes the weights, so that later evaluations are worse."""

    def next_step(self, step: int) -> int | None:
        return step + 1 if step >= 45 else 45 if step < 45 else None

    def after_step(self, run: Any, step: int, out: Any) -> None:

        run.assign({"dense/kernel": run.variables()["dense/kernel"] * -1.5})


@pytest.mark.parametrize("every", [5, 7])
def test_restore_best_after_an_early_stop(tmp_path: Path, every: int):
    estimator = small_model.make_estimator(tmp_path, keep_checkpoint_max=1)
    stop = eh.stop_if_no_decrease_hook(estimator, "loss", 40, run_every_steps=every, restore_best=True)
    metrics, _ = train_and_evaluate(estimator, [SpoilsWeights(), stop], 400)
    recorded = ec.read_eval_metrics(estimator.eval_dir())
    best = min(recorded, key=lambda step: recorded[step]["loss"])
    assert best == 40
    assert (
        estimator.stop_reason
        == f"early stopping: no lower loss than {recorded[40]['loss']:.6g} of step 40 up to step 80"
    )
    kept = ec.load_variables(str(tmp_path / "best_weights" / "40"))
    jax.tree.map(np.testing.assert_array_equal, dict(estimator.variables), kept)
    jax.tree.map(np.testing.assert_array_equal, ec.load_variables(str(tmp_path)), kept)
    assert metrics["loss"] == recorded[40]["loss"]
    assert estimator.evaluate(small_model.eval_input_fn(), name="again")["loss"] == recorded[40]["loss"]


class Exports:
    """An exporter that records its arguments."""

    name = "notes"

    def __init__(self) -> None:
        self.calls: list[tuple[int, float, bool]] = []

    def export(self, estimator: Any, path: str, checkpoint: str, result: Any, is_the_final_export: bool) -> str:
        weights = ec.load_variables(checkpoint)["dense/kernel"]
        self.calls.append((result["global_step"], float(np.abs(weights).sum()), is_the_final_export))
        return path


class StopsAt(eh.Hook):
    """Another hook that ends the run."""

    def __init__(self, step: int) -> None:
        self._step = step

    def next_step(self, step: int) -> int | None:
        return self._step if step < self._step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        run.request_stop("enough")


@pytest.mark.parametrize(
    ("max_steps", "examples", "epochs", "others", "last"),
    [
        (100, 256, None, [], 100),  # the last step is on the cadence of the checkpoints
        (95, 256, None, [], 95),
        (None, 256, 5, [], 80),  # the input ends, on the cadence
        (None, 240, 6, [], 90),
        (400, 256, None, [StopsAt(100)], 100),
        (400, 256, None, [StopsAt(95)], 95),
    ],
)
def test_restore_best_however_training_ends(
    tmp_path: Path, max_steps: int | None, examples: int, epochs: int | None, others: list[Any], last: int
):
    estimator, exports = small_model.make_estimator(tmp_path, keep_checkpoint_max=2), Exports()
    stop = eh.stop_if_no_decrease_hook(estimator, "loss", 1000, run_every_steps=5, restore_best=True)
    rows = slice(0, examples)
    training = ec.inputs.numpy_input_fn(
        {"x": small_model.X[rows]}, small_model.Y[rows], batch_size=16, num_epochs=epochs, shuffle=True, seed=3
    )
    metrics, _ = ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(training, max_steps=max_steps, hooks=[SpoilsWeights(), stop, *others]),
        [
            ec.EvalSpec(small_model.eval_input_fn(), exporters=[exports]),
            ec.EvalSpec(small_model.eval_input_fn(), name="b"),
        ],
    )
    recorded = ec.read_eval_metrics(estimator.eval_dir())
    kept = ec.load_variables(str(tmp_path / "best_weights" / "40"))
    jax.tree.map(np.testing.assert_array_equal, ec.load_variables(str(tmp_path / "checkpoints" / str(last))), kept)
    jax.tree.map(np.testing.assert_array_equal, dict(estimator.variables), kept)
    assert recorded[last] == recorded[40]
    assert metrics[None] == metrics["b"] == {**recorded[40], "global_step": last}
    assert exports.calls[-1] == (last, pytest.approx(float(np.abs(kept["dense/kernel"]).sum())), True)
    assert [final for *_, final in exports.calls].count(True) == 1
    events = EventAccumulator(estimator.eval_dir(), size_guidance={"scalars": 0}).Reload().Scalars("loss")
    assert [event.step for event in events] == list(recorded)
    assert events[-1].value == pytest.approx(recorded[40]["loss"])


def test_restore_best_keeps_last_weights_that_only_the_last_evaluation_saw(tmp_path: Path):
    """The last step is not on the cadence of the checkpoints, and its weights are the best."""
    plain = small_model.make_estimator(tmp_path / "plain").train(small_model.train_input_fn(), max_steps=55)
    estimator = small_model.make_estimator(tmp_path / "best")
    stop = eh.stop_if_no_decrease_hook(estimator, "loss", 1000, run_every_steps=20, restore_best=True)
    train_and_evaluate(estimator, [stop], 55)
    jax.tree.map(np.testing.assert_array_equal, estimator.variables, plain.variables)


def test_restore_best_changes_nothing_when_the_last_weights_are_the_best(tmp_path: Path):
    plain = small_model.make_estimator(tmp_path / "plain").train(small_model.train_input_fn(), max_steps=60)
    estimator = small_model.make_estimator(tmp_path / "best")
    stop = eh.stop_if_no_decrease_hook(estimator, "loss", 1000, run_every_steps=20, restore_best=True)
    train_and_evaluate(estimator, [stop], 60)
    jax.tree.map(np.testing.assert_array_equal, estimator.variables, plain.variables)


@pytest.mark.slow
def test_restore_best_without_its_checkpoint(tmp_path: Path):
    estimator = small_model.make_estimator(tmp_path)
    stop = eh.stop_if_no_decrease_hook(estimator, "loss", 30, run_every_steps=10, restore_best=True)
    with pytest.raises(
        HookError, match=r"the best evaluation is that of step 3, but its checkpoint no longer exists\. Raise"
    ):
        train_and_evaluate(estimator, [Records(3, loss=1e-6), stop], 400)


def test_restore_best_among_what_checkpoints_hold(tmp_path: Path):
    """The best evaluation has no checkpoint."""
    estimator = small_model.make_estimator(tmp_path)
    stop = eh.stop_if_no_decrease_hook(estimator, "loss", 30, run_every_steps=10, restore_best=True)
    train_and_evaluate(estimator, [Records(3, loss=1e-6, between_checkpoints=True), stop], 400)
    assert "early stopping" in estimator.stop_reason


def test_restore_best_keeps_weights_that_are_better_by_the_newest_evaluation(tmp_path: Path):
    """The only evaluation with a checkpoint is the worst. No checkpoint contains the weights of the others."""
    plain = small_model.make_estimator(tmp_path / "plain").train(small_model.train_input_fn(), max_steps=30)
    estimator = small_model.make_estimator(tmp_path / "best")
    stop = eh.stop_if_no_decrease_hook(estimator, "loss", 1000, run_every_steps=10, restore_best=True)
    others = [Records(step, loss=loss, between_checkpoints=True) for step, loss in ((12, 1.0), (26, 2.0))]
    estimator.train(small_model.train_input_fn(), max_steps=30, hooks=[Records(20, loss=5.0), *others, stop])
    assert (tmp_path / "best" / "checkpoints" / "20").is_dir()
    jax.tree.map(np.testing.assert_array_equal, estimator.variables, plain.variables)


class Records(eh.Hook):
    """Records an evaluation as if this run had made it."""

    def __init__(self, step: int, *, loss: float, between_checkpoints: bool = False) -> None:
        self.step, self.loss, self.between = step, loss, between_checkpoints

    def next_step(self, step: int) -> int | None:
        return self.step if step < self.step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        directory = run.estimator.eval_dir()
        append_eval_metrics(directory, step, {"loss": self.loss}, None, between_checkpoints=self.between)


@pytest.mark.parametrize("interrupted_at", [25, 40, 57])
def test_a_resumed_run_stops_where_the_uninterrupted_one_does(tmp_path: Path, interrupted_at: int):
    def run(folder: str, stop_at: int | None = None) -> ec.Estimator:
        estimator = small_model.make_estimator(tmp_path / folder)
        stop = eh.stop_if_no_decrease_hook(estimator, "loss", 40, run_every_steps=7)
        train_and_evaluate(estimator, [SpoilsWeights(), *([RaisesAt(stop_at)] if stop_at else []), stop], 400)
        return estimator

    straight = run("straight")
    with pytest.raises(KeyboardInterrupt):
        run("killed", interrupted_at)
    resumed = run("killed")
    assert resumed.stop_reason == straight.stop_reason
    assert resumed.latest_checkpoint().rpartition("/")[2] == straight.latest_checkpoint().rpartition("/")[2]
    jax.tree.map(np.testing.assert_array_equal, resumed.variables, straight.variables)


class RaisesAt(eh.Hook):
    """Ends a run abruptly with an exception."""

    def __init__(self, step: int) -> None:
        self._step = step

    def next_step(self, step: int) -> int | None:
        return self._step if step < self._step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        raise KeyboardInterrupt
