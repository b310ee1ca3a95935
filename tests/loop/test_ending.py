"""Tests of runs killed after their last save and before their end. The next call runs no step and ends the run."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._checkpoint.audit import audit
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._journal.reading import lineage_of
from estimator_core._loop.run_record import ended_step
from estimator_core.errors import CheckpointError, PreemptedError
from tests.loop.conftest import linear_model_fn


def copy_as_killed(model_dir: Path, target: Path, *, marked: bool = True) -> None:
    """Copies the state that a kill at this moment leaves, after the last checkpoint is written.

    Args:
        model_dir: the model_dir of the run.
        target: the path of the copy.
        marked: whether the last checkpoint is marked as the last one.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(CheckpointError, shutil.Error):  # older checkpoints are deleted at the same time
            newest = ec.latest_checkpoint(str(model_dir))
            if newest is not None and ("ending" in read_manifest(Path(newest)).extras) is marked:
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(model_dir, target, ignore=shutil.ignore_patterns("run.lock", ".draft-*"))
                return
        time.sleep(0.02)
    raise AssertionError(f"{model_dir} has no last checkpoint")


class Ends(ec.Hook):
    """Records steps and ends, counts steps in its state, and copies the model_dir as a kill leaves it."""

    def __init__(self, copy_to: Path | None = None, stop_at: int | None = None, *, marked: bool = True) -> None:
        self.copy_to, self.stop_at, self.marked = copy_to, stop_at, marked
        self.steps: list[int] = []
        self.ends: list[tuple[int, str, int]] = []
        self.seen = 0

    def next_step(self, step: int) -> int:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.steps.append(step)
        self.seen += 1
        if step == self.stop_at:
            run.request_stop("the rule says so")

    def end(self, run: Any) -> None:
        self.ends.append((run.step, run.stop_reason, self.seen))
        if self.copy_to is not None:
            copy_as_killed(run.model_dir, self.copy_to, marked=self.marked)

    def state(self) -> dict[str, int]:
        return {"seen": self.seen}

    def restore(self, state: Any) -> None:
        self.seen = state["seen"]


class FinalOnly:
    """An exporter that records its calls and copies the model_dir at one of them."""

    name = "noted"

    def __init__(self, copy_to: Path | None = None) -> None:
        self.copy_to, self.calls = copy_to, list[tuple[int, bool]]()

    def export(self, estimator: Any, path: str, checkpoint: str, result: Any, final: bool) -> None:
        self.calls.append((result["global_step"], final))
        if final and self.copy_to is not None:
            copy_as_killed(Path(estimator.model_dir), self.copy_to)


def ended(model_dir: Path) -> tuple[int, str] | None:
    """Returns the end of the run as recorded in the journal."""
    lineage = lineage_of(model_dir)
    assert lineage is not None
    return None if lineage.ended is None else (lineage.ended.step, lineage.ended.reason)


#: The ways a call ends: its arguments, the step at which the hook stops it, and its last step with the reason.
ENDS = {
    "max_steps": ({"max_steps": 7}, None, (7, "reached step 7")),
    "a hook": ({"max_steps": 20}, 6, (6, "the rule says so")),
    "a hook where a checkpoint is due": ({"max_steps": 20}, 10, (10, "the rule says so")),
    "a hook without an end": ({}, 6, (6, "the rule says so")),
}


@pytest.mark.parametrize("how", ENDS)
def test_the_next_call_ends_what_a_killed_one_has_left(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, tmp_path: Path, how: str
) -> None:
    arguments, stop_at, last = ENDS[how]
    whole, killed = tmp_path / "whole", [tmp_path / "once", tmp_path / "twice"]
    first = Ends(killed[0], stop_at)
    estimator = unbroken = make_estimator(model_dir=whole, keep_checkpoint_max=1)
    unbroken.train(train_input, hooks=[first], **arguments)
    for directory, copy_to in zip(killed, (killed[1], None), strict=True):
        assert ended(directory) is None
        hook = Ends(copy_to, stop_at)
        estimator = make_estimator(model_dir=directory, keep_checkpoint_max=1)
        estimator.train(train_input, hooks=[hook], **arguments)
        assert (hook.steps, hook.ends, estimator.stop_reason) == ([], first.ends, last[1])
        assert ended(directory) == ended(whole) == last
        assert audit(directory).findings == ()
        assert ec.latest_checkpoint(str(directory)) == str(directory / "checkpoints" / str(last[0]))
    for each in (estimator, unbroken):  # the next call continues at the next example
        each.train(train_input, steps=1)
    assert estimator.variables["w"].tobytes() == unbroken.variables["w"].tobytes()


def test_a_call_that_has_ended_does_not_end_again(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, tmp_path: Path
) -> None:
    model_dir = tmp_path / "model"
    make_estimator().train(train_input, hooks=[Ends(stop_at=6)], max_steps=20)
    done = Ends()
    make_estimator().train(train_input, hooks=[done], max_steps=6)
    assert done.ends == []
    begun = tmp_path / "begun"

    class Begins(ec.Hook):
        def after_create(self, run: Any) -> None:
            shutil.copytree(model_dir, begun, ignore=shutil.ignore_patterns("run.lock", ".draft-*"))

    make_estimator().train(train_input, hooks=[Begins()], max_steps=20)
    assert ended(begun) is None  # another call began and was killed before its first save
    hook = Ends()
    make_estimator(model_dir=begun).train(train_input, hooks=[hook], max_steps=20)
    assert hook.ends == [(20, "reached step 20", 14)]


def test_a_call_for_more_steps_is_another_call(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, tmp_path: Path
) -> None:
    make_estimator().train(train_input, hooks=[Ends(tmp_path / "killed")], max_steps=7)
    hook = Ends()
    make_estimator(model_dir=tmp_path / "killed").train(train_input, hooks=[hook], max_steps=9)
    assert (hook.steps, hook.ends) == ([8, 9], [(9, "reached step 9", 2)])


def test_an_input_that_had_ended_with_a_checkpoint_does_not_start_again(
    make_estimator: Callable[..., ec.Estimator], data: Any, tmp_path: Path
) -> None:
    once = ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=8, num_epochs=1, shuffle=False)
    first = Ends(tmp_path / "killed", marked=False)
    make_estimator(save_checkpoints_steps=5).train(once, hooks=[first])
    assert first.ends == [(5, "the input ended", 5)]
    hook = Ends()
    make_estimator(model_dir=tmp_path / "killed", save_checkpoints_steps=5).train(once, hooks=[hook])
    assert (hook.steps, hook.ends) == ([], first.ends)


@pytest.mark.parametrize("how", ["killed", "failed"])
def test_a_call_that_was_cut_short_does_not_hide_the_end_before_it(
    make_estimator: Callable[..., ec.Estimator], data: Any, tmp_path: Path, how: str
) -> None:
    once = ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=8, num_epochs=1, shuffle=False)
    estimator = make_estimator(save_checkpoints_steps=5)
    estimator.train(once)
    directory = tmp_path / ("killed" if how == "killed" else "model")

    class CutShort(ec.Hook):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            if step == 7:
                shutil.copytree(
                    run.model_dir, tmp_path / "killed", ignore=shutil.ignore_patterns("run.lock", ".draft-*")
                )
                raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        estimator.train(once, hooks=[CutShort()])
    hook = Ends()
    make_estimator(model_dir=directory, save_checkpoints_steps=5).train(once, hooks=[hook])
    assert (hook.steps, hook.ends) == ([6, 7, 8, 9, 10], [(10, "the input ended", 5)])


@pytest.mark.parametrize("with_journal", [True, False])
def test_an_error_in_the_call_that_ends_another_loses_nothing(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, tmp_path: Path, with_journal: bool
) -> None:
    killed = tmp_path / "killed"
    first = Ends(killed, stop_at=6)
    make_estimator().train(train_input, hooks=[first], max_steps=20)

    class Fails(ec.Hook):
        def after_create(self, run: Any) -> None:
            raise RuntimeError("the tracker does not answer")

    with pytest.raises(RuntimeError, match="the tracker"):
        make_estimator(model_dir=killed).train(train_input, hooks=[Fails()], max_steps=20)
    if not with_journal:  # as in a new copy of a URL
        for part in ("journal", "snapshots"):
            shutil.rmtree(killed / part, ignore_errors=True)
        (killed / "identity").unlink()
    hook = Ends()
    make_estimator(model_dir=killed).train(train_input, hooks=[hook], max_steps=20)
    assert (hook.steps, hook.ends) == ([], first.ends)


@pytest.mark.parametrize("batches", [5, 7])
def test_a_copy_of_checkpoints_alone_is_trained_on(
    make_estimator: Callable[..., ec.Estimator], tmp_path: Path, batches: int
) -> None:
    def some(count: int) -> list[Any]:
        return [({"x": np.ones((4, 3), np.float32)}, np.zeros(4, np.float32))] * count

    make_estimator(save_checkpoints_steps=5).train(lambda: some(batches))
    shutil.copytree(tmp_path / "model" / "checkpoints", tmp_path / "copy" / "checkpoints")
    hook = Ends()
    make_estimator(model_dir=tmp_path / "copy", save_checkpoints_steps=5).train(lambda: some(3), hooks=[hook])
    assert [step - batches for step in hook.steps] == [1, 2, 3]
    assert hook.ends[0][:2] == (batches + 3, "the input ended")


def test_a_stop_that_a_listener_asked_for_is_kept(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, tmp_path: Path
) -> None:
    class Stops(ec.CheckpointListener):
        def after_save(self, run: Any, step: int, checkpoint: Any) -> bool:
            return step == 10

    first = Ends(tmp_path / "killed")
    make_estimator().train(train_input, hooks=[first], max_steps=30, saving_listeners=[Stops()])
    hook = Ends()
    make_estimator(model_dir=tmp_path / "killed").train(train_input, hooks=[hook], max_steps=30)
    assert (hook.steps, hook.ends) == ([], first.ends)


@pytest.mark.parametrize("stop_at", [None, 6])
def test_the_evaluations_and_exports_at_the_end_are_made_up_for(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, eval_input: Any, tmp_path: Path, stop_at: int | None
) -> None:
    def run(model_dir: Path, hook: Ends, exporter: FinalOnly) -> Any:
        spec = ec.EvalSpec(eval_input, name="held_out", exporters=[exporter], throttle_secs=0, start_delay_secs=0)
        estimator = make_estimator(model_dir=model_dir)
        return ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=12, hooks=[hook]), spec)

    last, whole = stop_at or 12, tmp_path / "whole"
    first = Ends(tmp_path / "in-end", stop_at)
    metrics, _ = run(whole, first, FinalOnly(tmp_path / "in-export"))
    for killed in (tmp_path / "in-end", tmp_path / "in-export"):
        assert ended(killed) is None
        hook, exporter = Ends(), FinalOnly()
        assert run(killed, hook, exporter)[0] == metrics
        assert (hook.steps, hook.ends) == ([], first.ends)
        assert exporter.calls[-1] == (last, True)
        assert [final for _, final in exporter.calls].count(True) == 1
        assert ended(killed) == ended(whole)
        assert ec.read_eval_metrics(killed / "eval_held_out") == ec.read_eval_metrics(whole / "eval_held_out")
        assert audit(killed).findings == ()


class Kept:
    """A host transform that changes nothing."""

    name, version = "kept", 1
    files: ClassVar[dict[str, Path]] = {}

    def config(self) -> dict[str, Any]:
        return {}

    def apply(self, batch: Any) -> Any:
        return batch


@pytest.mark.parametrize("max_steps", [5, 100])
def test_the_last_exports_read_what_training_has_left(
    make_estimator: Callable[..., ec.Estimator], data: Any, eval_input: Any, tmp_path: Path, max_steps: int
) -> None:
    once = ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=8, num_epochs=1, shuffle=False)
    estimator = ec.Estimator(linear_model_fn, config=make_estimator().config, params={}, host_transforms=[Kept()])
    model_dir, noted = Path(estimator.model_dir), list[Any]()

    class Reads(FinalOnly):
        def export(self, estimator: Any, path: str, checkpoint: str, result: Any, final: bool) -> None:
            seen = json.loads((model_dir / "seen_features.json").read_text())["x"]["places"]
            record = json.loads((model_dir / "run.json").read_text())
            noted.append((final, seen, estimator.stop_reason, record.get("ended"), ended_step(model_dir)))

    spec = ec.EvalSpec(eval_input, exporters=[Reads()], start_delay_secs=0)
    ec.train_and_evaluate(estimator, ec.TrainSpec(once, max_steps=max_steps), spec)
    reason = "the input ended"
    ended = {"step": 5, "reason": reason, "failed": False}
    if max_steps == 5:  # known to be the last step when it is saved
        assert noted == [(True, 3, None, None, None)]
    else:
        assert noted[-1] == (True, 3, reason, {**ended, "owed": True}, None)
        assert json.loads((model_dir / "run.json").read_text())["ended"] == ended


def test_what_hooks_do_before_the_last_save_is_made_up_for(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, eval_input: Any
) -> None:
    fails, calls, exporter = [True], list[str](), FinalOnly()

    class Replaces(ec.Hook):
        def before_last_save(self, run: Any) -> None:
            calls.append("before_last_save")
            run.assign({"b": np.float32(42)})

    def evaluated(params: Any) -> Any:
        if fails[0]:
            raise OSError("the network is gone")
        calls.append("evaluated")
        return eval_input()

    def run() -> tuple[dict[str, Any], ec.Estimator]:
        estimator = make_estimator()
        train_spec = ec.TrainSpec(train_input, max_steps=7, hooks=[Replaces()])
        spec = ec.EvalSpec(evaluated, exporters=[exporter], start_delay_secs=0)
        return ec.train_and_evaluate(estimator, train_spec, spec)[0], estimator

    with pytest.raises(OSError, match="the network is gone"):
        run()
    assert calls == []
    fails[0] = False
    metrics, estimator = run()
    assert calls == ["evaluated", "before_last_save", "evaluated"]
    assert float(estimator.variables["b"]) == 42
    assert float(ec.load_variables(estimator.model_dir, "b")["b"]) == 42
    assert metrics["loss"] > 1000
    assert exporter.calls == [(7, True)]
    assert ended(Path(estimator.model_dir)) == (7, "reached step 7")
    run()  # only one more evaluation and export is left to do
    assert calls.count("before_last_save") == 1


@pytest.mark.parametrize("how", ["a signal", "an error"])
@pytest.mark.parametrize("same", [False, True], ids=["another Estimator", "the same Estimator"])
def test_what_happens_in_the_last_export_is_told(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, eval_input: Any, how: str, same: bool
) -> None:
    happens, told = [True], list[BaseException | None]()
    watcher = types.ModuleType("watcher")
    watcher.ESTIMATOR_PLUGIN_API = (1, 0)  # pyright: ignore[reportAttributeAccessIssue]

    def estimator_run_end(run: Any, error: BaseException | None) -> None:
        if run.mode == ec.ModeKeys.TRAIN:
            told.append(error)

    watcher.estimator_run_end = estimator_run_end  # pyright: ignore[reportAttributeAccessIssue]

    class Told(FinalOnly):
        def export(self, estimator: Any, path: str, checkpoint: str, result: Any, final: bool) -> None:
            super().export(estimator, path, checkpoint, result, final)
            if happens[0] and final and how == "a signal":
                signal.raise_signal(signal.SIGTERM)
            elif happens[0] and final:
                raise OSError("the disk is full")

    hook, exporter = Ends(stop_at=6), Told()

    def made() -> ec.Estimator:
        config, plugins = make_estimator(default_hooks=True).config, ec.Plugins(extra=[watcher])
        return ec.Estimator(linear_model_fn, config=config, params={}, plugins=plugins)

    kept = made()

    def run() -> ec.Estimator:
        estimator = kept if same else made()
        train_spec = ec.TrainSpec(train_input, max_steps=20, hooks=[hook])
        ec.train_and_evaluate(estimator, train_spec, ec.EvalSpec(eval_input, exporters=[exporter], start_delay_secs=0))
        return estimator

    model_dir = Path(make_estimator().model_dir)
    if how == "a signal":
        with pytest.raises(PreemptedError, match=r"\(SIGTERM\) while the last .* ended at step 6: the rule says so"):
            run()
        assert told == [None]
        assert ended(model_dir) is None
    else:
        with pytest.raises(OSError, match="the disk is full") as raised:
            run()
        assert told == [raised.value]
    happens[0], steps = False, list(hook.steps)
    run()
    assert hook.steps == steps
    assert exporter.calls[-1] == (6, True)
    assert told[1:] == [None]
    assert ended(model_dir) == (6, "the rule says so")
