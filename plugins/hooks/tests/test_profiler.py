"""Tests of ProfilerHook: every profile is kept, and a failure of a profile does not end the run."""

import logging
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.errors import HookError
from estimator_core.testing import FakeRun, drive
from plugins.hooks.tests.small_model import eval_input_fn, make_estimator, train_input_fn


def profiles(folder: Path) -> list[str]:
    """The first steps of the profiles in a folder, according to their names."""
    return sorted(path.parent.name.partition("_step_")[2] for path in folder.glob("plugins/profile/*/*.xplane.pb"))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_profiles_of_one_second_are_all_kept(tmp_path: Path):
    run = FakeRun(model_dir=tmp_path)
    drive([eh.ProfilerHook(save_steps=1)], steps=4, run=run)
    assert profiles(tmp_path) == ["2", "3", "4"]  # and not 5, because the run ends at step 4


def test_a_profile_without_steps_is_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)

    class Stops(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 4 if step < 4 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            run.request_stop("enough")

    drive([eh.ProfilerHook(save_steps=2), Stops()], steps=9, run=FakeRun(model_dir=tmp_path))
    assert profiles(tmp_path) == ["3"]
    assert [record.getMessage() for record in caplog.records if "steps up to 4" in record.getMessage()] == []


def test_a_profile_beside_another_one_is_left_out_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    jax.profiler.start_trace(str(tmp_path / "own"))
    try:
        run = drive([eh.ProfilerHook(save_steps=2)], steps=4, run=FakeRun(model_dir=tmp_path))
    finally:
        jax.profiler.stop_trace()
    assert run.step == 4
    assert profiles(tmp_path) == []
    (warning,) = warnings(caplog)
    assert warning.startswith("ProfilerHook: the profile that begins at step 3 is skipped: ")


def test_the_first_process_says_when_a_profile_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    answers = iter([False, True, False, False])
    monkeypatch.setattr("estimator_hooks.profiler.same_on_all_processes", lambda due: next(answers))
    run = FakeRun(model_dir=tmp_path)
    hook = eh.ProfilerHook(save_secs=1000)
    monkeypatch.setattr(hook, "next_step", lambda step: step + 1)
    drive([hook], steps=4, run=run)
    assert profiles(tmp_path) == ["3"]


def test_a_profile_that_is_left_out_takes_as_many_steps(tmp_path: Path):
    """Another process may have started it, and all processes need control at the same steps."""
    wanted: dict[int, Any] = {}

    class Asked(eh.ProfilerHook):
        def next_step(self, step: int) -> Any:
            wanted[step] = super().next_step(step)
            return wanted[step]

    jax.profiler.start_trace(str(tmp_path / "own"))
    try:
        drive([Asked(save_steps=2, num_steps=3)], steps=6, run=FakeRun(model_dir=tmp_path))
    finally:
        jax.profiler.stop_trace()
    assert wanted[2] == 5


def test_a_full_disk_does_not_end_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    original = jax.profiler.stop_trace

    def stop_trace() -> None:
        original()
        raise OSError("no space left on device")

    monkeypatch.setattr(jax.profiler, "stop_trace", stop_trace)
    run = drive([eh.ProfilerHook(save_steps=2)], steps=4, run=FakeRun(model_dir=tmp_path))
    assert run.step == 4
    (warning,) = warnings(caplog)
    assert "the profile of the steps up to 3 could not be written to" in warning
    assert "no space left on device" in warning


def test_a_folder_that_cannot_be_made_is_named_before_the_first_step(tmp_path: Path):
    (tmp_path / "file").touch()
    run = FakeRun(model_dir=tmp_path)
    with pytest.raises(HookError, match=r"the folder .*file cannot be created"):
        drive([eh.ProfilerHook(save_steps=2, output_dir=tmp_path / "file")], steps=4, run=run)
    assert run.step == 0


def test_another_process_than_the_chief_writes_into_a_folder_of_its_own(tmp_path: Path):
    second = ec.Processes("10.0.0.1:7070", count=2, index=1)
    run = FakeRun(model_dir=tmp_path, config=ec.RunConfig(model_dir=str(tmp_path), processes=second))
    drive([eh.ProfilerHook(save_steps=2)], steps=3, run=run)
    assert profiles(tmp_path / "process_1") == ["3"]
    assert profiles(tmp_path) == []


def test_hooks_that_wait_for_a_step_are_allowed_in_predictions(tmp_path: Path):
    estimator = make_estimator(tmp_path / "run")
    estimator.train(train_input_fn(), max_steps=1)
    hooks = [eh.ProfilerHook(save_steps=2, output_dir=tmp_path), eh.StallWatchdogHook(), eh.ThroughputHook(2)]
    rows = list(estimator.predict(eval_input_fn(), hooks=hooks))
    assert np.shape([row["logits"] for row in rows]) == (256, 3)
    assert profiles(tmp_path) == ["3"]
