"""Tests of MlflowTracker against MLflow's own SQLite store, which MLflow reads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_hooks as eh
from estimator_core.testing import drive
from plugins.hooks.tests.trackers.test_tracker_hook import KEPT, fake_run, leave_record

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: estimator-hooks[mlflow]")
pytestmark = [
    pytest.mark.libraries,
    # MLflow's own dependencies warn about each other.
    pytest.mark.filterwarnings("ignore"),
]
OUTPUTS = {"loss": lambda step: np.float32(step), "rate": lambda step: np.float32(0.5)}


def curve(client: Any, run_id: str, name: str) -> list[tuple[int, float]]:
    return sorted((point.step, point.value) for point in client.get_metric_history(run_id, name))


def test_a_killed_and_resumed_run_has_every_point_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)  # MLflow writes files into it
    uri, model_dir = f"sqlite:///{tmp_path / 'runs.db'}", tmp_path / "digits"

    leave_record(model_dir)

    def track(steps: int, start: int = 0, evaluate_at: int | None = None, fail_at: int | None = None) -> None:
        run = fake_run(model_dir, step=start, params={"rate": 0.1})

        class Evaluates(eh.Hook):
            def next_step(self, step: int) -> int | None:
                return evaluate_at if evaluate_at is not None and step < evaluate_at else None

            def after_step(self, at: Any, step: int, out: Any) -> None:
                run.history.add_evaluation(None, {"global_step": step, "accuracy": step / 100})

        tracker = eh.MlflowTracker(uri, experiment="digits")
        drive([Evaluates(), eh.TrackerHook(tracker, 2)], steps=steps, run=run, outputs=OUTPUTS, fail_at=fail_at)

    with pytest.raises(RuntimeError, match="the loop fails"):
        track(20, evaluate_at=5, fail_at=9)
    track(14, start=4, evaluate_at=5)  # from the checkpoint of step 4: sends 6 and 8, and the evaluation of 5, again
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("digits")
    (stored,) = client.search_runs([experiment.experiment_id])
    assert stored.info.status == "FINISHED"
    assert stored.info.run_name == "digits"
    assert stored.data.params["params/rate"] == "0.1"
    assert stored.data.params["config/save_summary_steps"] == "100"
    assert curve(client, stored.info.run_id, "train/loss") == [(step, float(step)) for step in range(2, 19, 2)]
    assert curve(client, stored.info.run_id, "eval/accuracy") == [(5, 0.05)]
    for name, text in KEPT.items():
        assert Path(client.download_artifacts(stored.info.run_id, name)).read_text() == text


def test_a_run_that_the_store_does_not_know_is_started_anew(tmp_path: Path):
    for store in ("one.db", "two.db"):
        tracker = eh.MlflowTracker(f"sqlite:///{tmp_path / store}", experiment="digits", run_name="named")
        drive([eh.TrackerHook(tracker, 1)], steps=3, run=fake_run(tmp_path / "run"), outputs=OUTPUTS)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'two.db'}")
    (stored,) = client.search_runs([client.get_experiment_by_name("digits").experiment_id])
    assert stored.info.run_name == "named"
    assert [step for step, _ in curve(client, stored.info.run_id, "train/rate")] == [1, 2, 3]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store that several tests share, because MLflow takes seconds to create it."""
    return f"sqlite:///{tmp_path_factory.mktemp('store') / 'runs.db'}"


def test_names_that_the_store_refuses_are_kept_in_another_form(store: str, tmp_path: Path):
    outputs = {name: lambda step: np.float32(step) for name in ("recall@5", "a//b", "part/..")}
    run = fake_run(tmp_path / "run", params={"lr[0]": 1, "p" * 300: 2})
    drive([eh.TrackerHook(eh.MlflowTracker(store, experiment="names"), 1)], steps=2, run=run, outputs=outputs)
    client = mlflow.MlflowClient(tracking_uri=store)
    (stored,) = client.search_runs([client.get_experiment_by_name("names").experiment_id])
    assert {"train/recall_5", "train/a/_/b", "train/part/_"} <= set(stored.data.metrics)
    assert stored.data.params["params/lr_0_"] == "1"
    assert stored.data.params[f"params/{'p' * 243}"] == "2"


def test_a_run_that_was_deleted_in_the_store_is_started_anew(
    store: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    client = mlflow.MlflowClient(tracking_uri=store)
    run = eh.TrackedRun(model_dir=tmp_path, first_step=0, parameters={})
    tracker = eh.MlflowTracker(store)
    first = tracker.start(run, None)
    client.delete_run(first)
    second = tracker.start(run, first)
    assert second != first
    assert f"MLflow no longer has the run {first}, so a new run starts." in caplog.messages
    assert tracker.start(run, second) == second


def test_a_store_that_does_not_answer_begins_no_other_run(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = eh.TrackedRun(model_dir=tmp_path, first_step=0, parameters={})
    tracker = eh.MlflowTracker(store)
    first = tracker.start(run, None)

    def away(*_: Any) -> None:
        raise mlflow.exceptions.MlflowException("503", error_code=mlflow.exceptions.TEMPORARILY_UNAVAILABLE)

    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "get_run", away)
        with pytest.raises(mlflow.exceptions.MlflowException, match="503"):
            tracker.start(run, first)
    assert tracker.start(run, first) == first
