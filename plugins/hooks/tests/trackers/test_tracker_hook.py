"""Tests of TrackerHook: the calls of a tracker, their order, and a resume."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
import estimator_hooks as eh
from estimator_core._builtin_hooks.history import History
from estimator_core.config import RunConfig
from estimator_core.errors import HookError
from estimator_core.testing import FakeRun, drive
from estimator_hooks.trackers import hook as tracker_hook
from estimator_testing.step_clock import StepClock
from plugins.hooks.tests import small_model


class RecordingTracker:
    """Records its calls."""

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


class EveryStep(eh.Hook):
    """Requires control at each step, so that values are not delayed."""

    def next_step(self, step: int) -> int | None:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        assert step > 0


@pytest.mark.parametrize("k", [1, 4])
def test_scalars_and_evaluations(tmp_path: Path, k: int):
    tracker, run = RecordingTracker(), fake_run(tmp_path)
    run.history.add_evaluation(None, {"global_step": 0, "loss": 9.0})  # from an earlier call

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


def test_points_that_wait_at_a_save_are_sent_by_the_resumed_run(tmp_path: Path):
    """The evaluations of a checkpoint come before its save, but were sent after it. A kill lost them."""
    tracker, run = RecordingTracker(), fake_run(tmp_path, output_kinds={"loss": "scalar"})
    killed = eh.TrackerHook(tracker, 3)
    killed.after_create(run)
    killed.on_values(run, range(1, 6), {"loss": np.arange(5, dtype=np.float32)})
    run.history.add_evaluation(None, {"global_step": 5, "loss": float("nan")})
    memory = json.loads(json.dumps(killed.state()))
    run.history.add_evaluation(None, {"global_step": 9, "loss": 0.1})  # after the checkpoint: it is evaluated again
    assert tracker.told == [("start", 0, None), (3, {"train/loss": 2.0})]
    waiting = (5, {"eval/loss": pytest.approx(float("nan"), nan_ok=True)})
    for resumed_from, expected in ((memory, [waiting]), (None, [])):
        tracker, again = RecordingTracker(), fake_run(tmp_path, step=5)
        hook = eh.TrackerHook(tracker, 3)
        if resumed_from:
            hook.restore(resumed_from)
        hook.after_create(again)
        hook.end(again)
        assert tracker.told == [("start", 5, "first"), *expected, "finished"]


@pytest.mark.parametrize(
    "make_params", [dict, pytest.param(lambda **values: ec.HParams(**values), marks=pytest.mark.plugins)]
)
def test_parameters(tmp_path: Path, make_params: Any):
    tracker, params = RecordingTracker(), make_params(rate=0.1)
    run = fake_run(tmp_path, params=params, config=RunConfig(model_dir="runs/x", tf_random_seed=7))
    drive([eh.TrackerHook(tracker)], steps=1, run=run)
    assert tracker.parameters["params/rate"] == 0.1
    assert tracker.parameters["config/tf_random_seed"] == 7


def test_a_tracker_gets_the_record_of_the_start_without_secrets(tmp_path: Path):
    """It receives the record of a real run. Without a record, it receives what is known."""

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        loss = jnp.mean((features["x"] * ec.get_variable("slope", ()) - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(params["rate"]))

    x = np.ones(8, np.float32)
    inputs = ec.inputs.numpy_input_fn({"x": x}, x, batch_size=8, num_epochs=None, shuffle=False)
    params, tracker = {"rate": 0.1, "api_key": "abc-1"}, RecordingTracker()
    estimator = ec.Estimator(model_fn, str(tmp_path / "run"), params=params)
    estimator.train(inputs, hooks=[eh.TrackerHook(tracker)], max_steps=1)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    told = tracker.parameters
    assert {name: told[f"params/{name}"] for name in params} == record["hparams"] == {"rate": 0.1, "api_key": "***"}
    assert {name: told[f"config/{name}"] for name in record["run_config"]} == record["run_config"]
    assert {name: told[f"versions/{name}"] for name in record["versions"]} == record["versions"]
    assert (told["call/last_step"], told["arguments"]) == (1, " ".join(record["arguments"]))
    assert told["plugins/estimator-core"] == record["versions"]["estimator-core"]
    alone = RecordingTracker()
    drive([eh.TrackerHook(alone)], steps=1, run=fake_run(tmp_path / "none", params={**params, "note": "a=b"}))
    assert {name: alone.parameters[f"params/{name}"] for name in (*params, "note")} == {
        "rate": 0.1,
        "api_key": "***",
        "note": "a=b",
    }


def leave_record(model_dir: Path) -> None:
    """Writes the files that the core and `estimator run` write at a start."""
    (model_dir / "capsules").mkdir(parents=True, exist_ok=True)
    (model_dir / "run.json").write_text(KEPT["run.json"])
    (model_dir / "capsules" / "starts.jsonl").write_text('{"capsule": "0a"}\n{"capsule": "1b"}\n')
    for name in ("0a", "1b"):
        (model_dir / "capsules" / f"{name}.json").write_text(json.dumps({"capsule": name}))


KEPT = {
    "run.json": json.dumps({"hparams": {"rate": 0.1, "layers": [2]}, "run_config": {"save_summary_steps": 100}}),
    "capsule.json": '{"capsule": "1b"}',
}


class KeepingTracker(RecordingTracker):
    """Keeps files as well, unless it is full."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room, self.kept = room, dict[str, str]()

    def keep(self, name: str, text: str) -> None:
        if len(self.kept) == self.room:
            raise OSError("no room is left")
        self.kept[name] = text


def test_a_tracker_that_keeps_files_gets_the_record_of_the_newest_start(tmp_path: Path):
    """It receives the record before the first points, in case of a kill, and after the hooks that write parts of it."""
    tracker = KeepingTracker(room=9)

    class Writes(eh.Hook):
        def after_create(self, run: Any) -> None:
            leave_record(tmp_path)

    outputs = {"loss": lambda step: np.float32(step)}
    with pytest.raises(RuntimeError, match="the loop fails"):
        drive(
            [eh.TrackerHook(tracker, 1), Writes(), EveryStep()],
            steps=5,
            run=fake_run(tmp_path),
            outputs=outputs,
            fail_at=3,
        )
    assert tracker.kept == KEPT
    assert tracker.told[1][0] == 1


def test_a_tracker_that_refuses_files_stops_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    leave_record(tmp_path)
    tracker = KeepingTracker(room=1)
    drive([eh.TrackerHook(tracker, 1)], steps=2, run=fake_run(tmp_path))
    assert (tracker.told[-1], list(tracker.kept)) == ("finished", ["run.json"])
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert warning == "recording did not accept the record of the run (OSError: no room is left)."


def test_a_failed_run(tmp_path: Path):
    tracker = RecordingTracker()
    with pytest.raises(RuntimeError, match="the loop fails"):
        drive([eh.TrackerHook(tracker)], steps=5, run=fake_run(tmp_path), fail_at=3)
    assert tracker.told[-1] == "failed"


class Raises(eh.Hook):
    """Ends a run with an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def after_step(self, run: Any, step: int, out: Any) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "ending"), [(KeyboardInterrupt(), "interrupted"), (OSError("no room"), "failed")], ids=["key", "error"]
)
def test_a_run_that_the_user_stops_at_once_has_not_failed(tmp_path: Path, error: BaseException, ending: str):
    tracker = RecordingTracker()
    with pytest.raises(type(error)):
        small_model.make_estimator(tmp_path).train(
            small_model.train_input_fn(), hooks=[eh.TrackerHook(tracker), Raises(error)], max_steps=3
        )
    assert tracker.told[-1] == ending


def test_a_run_after_a_ctrl_c_finishes(tmp_path: Path):
    """A program may train where it handles the Ctrl-C that ended another run."""
    tracker = RecordingTracker()
    estimator = small_model.make_estimator(tmp_path)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        estimator.train(small_model.train_input_fn(), hooks=[eh.TrackerHook(tracker)], max_steps=3)
    assert tracker.told[-1] == "finished"


class WeakTracker(RecordingTracker):
    """Refuses the points of some steps. With `ends=False`, the end of its run fails."""

    def __init__(self, refused: set[int], *, ends: bool = True) -> None:
        super().__init__()
        self.refused, self.ends = refused, ends

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        if step in self.refused:
            raise ConnectionError("the server is down")
        super().log(metrics, step)

    def finish(self, ending: str) -> None:
        super().finish(ending)
        if not self.ends:
            raise ConnectionError("the server is down")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


class Repairs(eh.Hook):
    """The tracker accepts everything from a step on."""

    def __init__(self, tracker: WeakTracker, at: int) -> None:
        self._tracker, self._at = tracker, at

    def next_step(self, step: int) -> int | None:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step == self._at:
            self._tracker.refused.clear()


def test_points_that_a_tracker_refuses_come_again_in_order(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    tracker = WeakTracker({4, 6})
    outputs = {"loss": lambda step: np.float32(step)}
    drive([Repairs(tracker, 8), eh.TrackerHook(tracker, 2)], steps=10, outputs=outputs, run=fake_run(tmp_path))
    assert [told[0] for told in tracker.told[1:-1]] == [2, 4, 6, 8, 10]
    assert tracker.told[-1] == "finished"
    assert warnings(caplog) == [
        "recording did not accept the point of step 4 (ConnectionError: the server is down). It is kept and sent again "
        "with the next ones.",
        "recording accepts points again: none is missing.",
    ]


def test_of_too_many_points_that_wait_every_second_one_is_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tracker_hook, "_MOST_WAITING", 4)
    tracker = WeakTracker(set(range(2, 10)))
    outputs = {"loss": lambda step: np.float32(step)}
    drive([Repairs(tracker, 10), eh.TrackerHook(tracker, 1)], steps=12, outputs=outputs, run=fake_run(tmp_path))
    assert [told[0] for told in tracker.told[1:-1]] == [1, 2, 8, 10, 11, 12]
    assert warnings(caplog)[1:] == [
        *["recording did not accept 5 points of train, so every second one is dropped."] * 3,
        "recording accepts points again: 6 are missing.",
    ]


def test_points_that_a_tracker_never_takes_are_counted_and_its_run_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    tracker = WeakTracker({6}, ends=False)
    outputs = {"loss": lambda step: np.float32(step)}
    run = drive([eh.TrackerHook(tracker, 2), EveryStep()], steps=10, outputs=outputs, run=fake_run(tmp_path))
    assert (run.step, tracker.told[-1]) == (10, "finished")
    assert warnings(caplog)[1:] == [
        "recording did not accept 3 points of the run (ConnectionError: the server is down), so they are lost.",
        "recording could not end its run (ConnectionError: the server is down).",
    ]


def test_a_tracker_that_refuses_its_first_point_ends_the_run(tmp_path: Path):
    tracker = WeakTracker({2})
    outputs = {"loss": lambda step: np.float32(step)}
    with pytest.raises(ConnectionError, match="the server is down"):
        drive([eh.TrackerHook(tracker, 2), EveryStep()], steps=10, outputs=outputs, run=fake_run(tmp_path))
    assert tracker.told == [("start", 0, None), "failed"]


def test_a_refused_evaluation_holds_up_no_other_point_and_the_tracker_s_run_ends(tmp_path: Path):
    """The end of the hook once sent the evaluation again first, so the run of the tracker stayed open."""
    tracker, run = WeakTracker({3}), fake_run(tmp_path)

    class Evaluates(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 3 if step < 3 else None

        def after_step(self, at: Any, step: int, out: Any) -> None:
            run.history.add_evaluation(None, {"global_step": step, "loss": 0.5})

    outputs = {"loss": lambda step: np.float32(step)}
    drive([Evaluates(), eh.TrackerHook(tracker, 2), EveryStep()], steps=8, outputs=outputs, run=run)
    assert [told[0] for told in tracker.told[1:-1]] == [2, 4, 6, 8]
    assert tracker.told[-1] == "finished"


def test_a_point_that_wandb_refuses_comes_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    sent: list[Any] = []
    down = [True]

    def log(values: Mapping[str, float]) -> None:
        if down.pop() if down else False:
            raise ConnectionError("the server is down")
        sent.append(values)

    client = SimpleNamespace(id="1", log=log, define_metric=lambda *_, **__: None, summary={})
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **_: client))
    tracker = eh.WandbTracker("digits")
    tracker.start(eh.TrackedRun(model_dir=tmp_path, first_step=0, parameters={}), None)
    with pytest.raises(ConnectionError):
        tracker.log({"train/loss": 1.0}, 2)
    tracker.log({"train/loss": 1.0}, 2)
    assert sent == [{"train/loss": 1.0, "train/global_step": 2}]


def test_a_damaged_file_begins_another_run(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "tracker_recording.json").write_text("")
    tracker = RecordingTracker()
    drive([eh.TrackerHook(tracker)], steps=1, run=fake_run(tmp_path))
    assert tracker.told[0] == ("start", 0, None)
    assert json.loads((tmp_path / "tracker_recording.json").read_text()) == {"run_id": "first"}
    (warning,) = warnings(caplog)
    assert "tracker_recording.json is damaged" in warning


@pytest.mark.parametrize("mode", ["eval", "infer"])
def test_calls_that_do_not_train_are_refused(tmp_path: Path, mode: str):
    """An evaluation during training would send the rest of the training to a separate run."""
    tracker = RecordingTracker()
    with pytest.raises(HookError, match=f"this is a call of mode '{mode}'. Pass the hook to train only"):
        drive([eh.TrackerHook(tracker)], steps=1, run=fake_run(tmp_path, mode=mode))
    assert tracker.told == []


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


class AwayTracker(RecordingTracker):
    """A tracker whose server is away for 1000 seconds. Each attempt waits for it and is counted."""

    refused = 0

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        if 1015 < time.monotonic() < 2015:
            self.refused += 1
            time.sleep(5)
            raise ConnectionError("the server does not answer")
        super().log(metrics, step)


def test_a_server_that_is_away_takes_a_tenth_of_the_time(tmp_path: Path):
    tracker, clock = AwayTracker(), StepClock(seconds_per_step=1, monotonic=1000)
    hooks = [eh.TrackerHook(tracker, every_n_steps=10), EveryStep()]
    drive(hooks, steps=1000, run=fake_run(tmp_path), clock=clock)
    assert 10 < tracker.refused < 20
    assert clock.monotonic() == 2000 + 5 * tracker.refused
    assert [told[0] for told in tracker.told[1:-1]] == list(range(10, 1001, 10))
