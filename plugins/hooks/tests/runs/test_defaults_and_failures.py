"""Tests of the default hooks of this package: how to disable them, and runs in which a hook raises."""

from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.errors import NanLossDuringTrainingError
from plugins.hooks.tests import small_model


def test_a_plain_run_shows_progress_logs_the_loss_and_writes_summaries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO")
    estimator = small_model.make_estimator(tmp_path).train(small_model.train_input_fn(), max_steps=30)
    assert capsys.readouterr().err.startswith("train: 30/30 (100%), loss ")
    assert "step = 1" in caplog.text
    assert [event.step for event in EventAccumulator(str(tmp_path)).Reload().Scalars("batch_accuracy")] == [1]
    estimator.evaluate(small_model.eval_input_fn(), name="val")
    assert capsys.readouterr().err.startswith("evaluate val: 4, ")


@pytest.mark.parametrize("default_hooks", [False, ["another"]])
def test_progress_is_switched_off_in_run_config(tmp_path: Path, capsys: pytest.CaptureFixture[str], default_hooks: Any):
    estimator = small_model.make_estimator(
        tmp_path, default_hooks=default_hooks, log_step_count_steps=None, save_summary_steps=None
    )
    estimator.train(small_model.train_input_fn(), max_steps=3)
    assert capsys.readouterr().err == ""
    assert not list(tmp_path.glob("events.*"))


def test_nan_stops_the_run(tmp_path: Path):
    def spoilt() -> Any:
        for index in range(10):
            yield {"x": small_model.X[:16] * (float("nan") if index == 4 else 1)}, small_model.Y[:16]

    with pytest.raises(NanLossDuringTrainingError, match="at step 5"):
        small_model.make_estimator(tmp_path).train(spoilt, max_steps=8)


class Notes(eh.Hook):
    """Records its calls, and raises in one of them."""

    def __init__(self, told: list[str], label: str, raises_in: str = "") -> None:
        self._told, self._label, self._raises_in = told, label, raises_in

    def begin(self, run: Any) -> None:
        self._note("begin")

    def after_create(self, run: Any) -> None:
        self._note("after_create")

    def before_step(self, run: Any, step: int) -> None:
        self._note("before")

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self._note("after")

    def end(self, run: Any) -> None:
        self._note("end")

    def _note(self, method: str) -> None:
        self._told.append(f"{self._label}.{method}")
        if method == self._raises_in:
            raise RuntimeError(f"{self._label} breaks")


def test_the_order_of_the_calls(tmp_path: Path):
    told: list[str] = []
    hooks = [Notes(told, "a"), Notes(told, "b")]
    small_model.make_estimator(tmp_path).train(small_model.train_input_fn(), max_steps=2, hooks=hooks)
    methods = ["begin", "after_create", "before", "after", "before", "after", "end"]
    assert told == [f"{label}.{method}" for method in methods for label in "ab"]


@pytest.mark.parametrize("method", ["begin", "after_create", "before", "after", "end"])
def test_every_hook_that_began_ends_when_one_raises(tmp_path: Path, method: str):
    told: list[str] = []
    hooks = [Notes(told, "a"), Notes(told, "b", method), Notes(told, "c")]
    with pytest.raises(RuntimeError, match="b breaks") as raised:
        small_model.make_estimator(tmp_path).train(small_model.train_input_fn(), max_steps=2, hooks=hooks)
    began = [line[0] for line in told if line.endswith("begin")]
    assert [line for line in told if line.endswith("end")] == [f"{label}.end" for label in began]
    step = {"after": 1, "end": 2}.get(method, 0)
    called = {"before": "before_step", "after": "after_step"}.get(method, method)
    (note,) = raised.value.__notes__
    assert note.startswith("in hook Notes from ")
    assert note.endswith(f", {called}, step {step} of mode 'train'")


def test_listeners_of_a_saver_hook(tmp_path: Path):
    told: list[tuple[str, int]] = []

    class Listens(eh.CheckpointListener):
        def before_save(self, run: Any, step: int) -> None:
            told.append(("before", step))

        def after_save(self, run: Any, step: int, checkpoint: Any) -> None:
            told.append(("after", int(Path(checkpoint.path).name)))

    saver = eh.CheckpointSaverHook(save_steps=7, listeners=[Listens()])
    small_model.make_estimator(tmp_path).train(small_model.train_input_fn(), max_steps=16, hooks=[saver])
    assert told == [(word, step) for step in (0, 7, 14, 16) for word in ("before", "after")]
    assert ec.latest_checkpoint(str(tmp_path)).endswith("16")
