"""TrackerHook: what a tracker is told, in which order, and after a resume."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
import estimator_hooks as eh
from estimator_core._builtin_hooks.history_recorder import History
from estimator_core.config import RunConfig
from estimator_core.testing import FakeRun, drive


class RecordingTracker:
    """Keeps what it is told."""

    name = "recording"

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.parameters: Mapping[str, Any] = {}

    def start(self, run: eh.TrackedRun, run_id: str | None) -> str:
        self.told.append(("start", run.first_step, run_id))
        self.parameters = run.parameters
        return run_id or "first"

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.told.append((step, dict(metrics)))

    def finish(self, ending: str) -> None:
        self.told.append(ending)


class TrackedFakeRun(FakeRun):
    """A fake run whose estimator has a history."""

    history: History

    @property
    def estimator(self) -> Any:
        return SimpleNamespace(history=self.history)


def fake_run(model_dir: Path, **fields: Any) -> TrackedFakeRun:
    run = TrackedFakeRun(model_dir=model_dir, **fields)
    run.history = History()
    return run


@pytest.mark.parametrize("k", [1, 4])
def test_scalars_and_evaluations(tmp_path: Path, k: int):
    tracker, run = RecordingTracker(), fake_run(tmp_path)
    run.history.add_evaluation(None, {"global_step": 0, "loss": 9.0})  # of an earlier call

    class Evaluates(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 5 if step < 5 else None

        def after_step(self, at: Any, step: int, out: Any) -> None:
            run.history.add_evaluation("val", {"global_step": step, "loss": 0.5, "table": np.eye(2), "note": "x"})

    outputs = {"loss": lambda step: np.float32(step), "rate": lambda step: np.float32(0.5)}
    drive([Evaluates(), eh.TrackerHook(tracker, 3)], steps=7, outputs=outputs, run=run, steps_per_dispatch=k)
    assert tracker.told[0] == ("start", 0, None)
    assert tracker.told[-1] == "finished"
    assert sorted(tracker.told[1:-1], key=str) == [
        (3, {"train/loss": 3.0, "train/rate": 0.5}),
        (5, {"eval_val/loss": 0.5}),
        (6, {"train/loss": 6.0, "train/rate": 0.5}),
    ]


def test_a_later_call_goes_on_with_the_tracker_s_run(tmp_path: Path):
    drive([eh.TrackerHook(RecordingTracker(), 3)], steps=4, run=fake_run(tmp_path))
    assert json.loads((tmp_path / "tracker_recording.json").read_text()) == {"run_id": "first"}
    tracker = RecordingTracker()
    drive([eh.TrackerHook(tracker, 3)], steps=4, run=fake_run(tmp_path, step=4))
    assert tracker.told[0] == ("start", 4, "first")


@pytest.mark.parametrize(
    "make_params", [dict, pytest.param(lambda **values: ec.HParams(**values), marks=pytest.mark.plugins)]
)
def test_parameters(tmp_path: Path, make_params: Any):
    tracker, params = RecordingTracker(), make_params(rate=0.1)
    run = fake_run(tmp_path, params=params, config=RunConfig(model_dir="runs/x", tf_random_seed=7))
    drive([eh.TrackerHook(tracker)], steps=1, run=run)
    assert tracker.parameters["params/rate"] == 0.1
    assert tracker.parameters["config/tf_random_seed"] == 7


def test_a_failed_run(tmp_path: Path):
    tracker = RecordingTracker()
    with pytest.raises(RuntimeError, match="the loop fails"):
        drive([eh.TrackerHook(tracker)], steps=5, run=fake_run(tmp_path), fail_at=3)
    assert tracker.told[-1] == "failed"


def test_only_the_chief_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cluster = {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    tracker = RecordingTracker()
    drive([eh.TrackerHook(tracker, 1)], steps=5, run=fake_run(tmp_path, config=RunConfig(model_dir="x")))
    assert tracker.told == []
    assert list(tmp_path.iterdir()) == []


def test_refused():
    with pytest.raises(TypeError, match="must be a Tracker, given: str"):
        eh.TrackerHook("mlflow")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="every_n_steps must be at least 1"):
        eh.TrackerHook(RecordingTracker(), 0)


@pytest.mark.parametrize(("tracker", "extra"), [(eh.MlflowTracker(), "mlflow"), (eh.WandbTracker("p"), "wandb")])
def test_a_missing_library_is_named(tmp_path: Path, tracker: Any, extra: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, extra, None)
    with pytest.raises(ImportError, match=rf"is not installed\. Install estimator-hooks\[{extra}\]"):
        drive([eh.TrackerHook(tracker)], steps=1, run=fake_run(tmp_path))
