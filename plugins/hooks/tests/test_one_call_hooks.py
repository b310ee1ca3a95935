"""Tests of IteratorInitializerHook, FinalOpsHook, GlobalStepWaiterHook, StallWatchdogHook, ParameterSummaryHook."""

import logging
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimator_hooks as eh
from estimator_core.errors import ArgumentError, ArgumentTypeError, HookError
from estimator_core.testing import FakeRun, drive
from estimator_hooks import global_step_waiter
from estimator_hooks.parameter_summary import table


def test_iterator_initializer_is_called_once_before_the_first_step():
    calls: list[tuple[str, int]] = []
    hook = eh.IteratorInitializerHook()
    hook.iterator_initializer_func = lambda run: calls.append((run.mode, run.step))
    drive([hook], steps=3)
    assert calls == [("train", 0)]
    assert hook.next_step(0) is None


def test_iterator_initializer_without_a_function():
    with pytest.raises(HookError, match="iterator_initializer_func is not set"):
        drive([eh.IteratorInitializerHook()], steps=1)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize(
    ("final_ops", "expected"),
    [
        ("loss", 10.0),
        (["loss", "half"], [10.0, 5.0]),
        ({"a": "half"}, {"a": 5.0}),
        (lambda run: run.step, 10),
    ],
)
def test_final_ops(final_ops: Any, expected: Any, k: int):
    hook = eh.FinalOpsHook(final_ops)
    outputs = {"loss": lambda step: np.float32(step), "half": lambda step: np.float32(step / 2)}
    drive([hook], steps=10, outputs=outputs, steps_per_dispatch=k)
    assert hook.final_ops_values == expected


def test_final_ops_after_no_step_and_of_an_unknown_name():
    hook = eh.FinalOpsHook("loss")
    drive([hook], steps=0)
    assert hook.final_ops_values is None
    with pytest.raises(HookError, match="no output 'los'"):
        drive([eh.FinalOpsHook("los")], steps=1)
    with pytest.raises(HookError, match="final_ops is empty"):
        drive([eh.FinalOpsHook([])], steps=1)


def test_global_step_waiter(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    checkpoints = iter([None, "runs/checkpoints/40", "runs/checkpoints/99", "runs/checkpoints/120"])
    pauses: list[float] = []
    monkeypatch.setattr(global_step_waiter, "latest_checkpoint", lambda model_dir: next(checkpoints))
    monkeypatch.setattr(global_step_waiter.time, "sleep", pauses.append)
    drive([eh.GlobalStepWaiterHook(100)], steps=1)
    assert pauses == [0.5, 0.5, 0.5]
    assert "Waiting for step 100; model_dir is at step 0." in caplog.text


def test_global_step_waiter_does_not_wait_for_what_is_there():
    drive([eh.GlobalStepWaiterHook(100)], steps=1, run=FakeRun(step=100))
    with pytest.raises(
        HookError, match=r"waited 0 seconds for step 100; the newest checkpoint of model_dir is at step 0"
    ):
        drive([eh.GlobalStepWaiterHook(100, timeout_secs=0.0)], steps=1)


def test_stall_watchdog_dumps_the_stacks_once_and_says_when_it_goes_on(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    hook = eh.StallWatchdogHook(timeout_secs=0.2)

    class Stalls(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 3 if step < 3 else None

        def before_step(self, run: Any, step: int) -> None:
            deadline = time.monotonic() + 20.0
            while "no step has finished" not in caplog.text and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(0.3)

    drive([hook, Stalls()], steps=5)
    messages = [record.getMessage() for record in caplog.records]
    (dump,) = [message for message in messages if "no step has finished" in message]
    assert "in before_step" in dump
    assert "the last one was step 1" in dump
    assert any("finished after" in message for message in messages)
    assert not [thread for thread in threading.enumerate() if thread.name == "stall-watchdog"]


def test_stall_watchdog_is_silent_and_ends_its_thread(caplog: pytest.LogCaptureFixture):
    drive([eh.StallWatchdogHook(timeout_secs=60.0)], steps=50)
    with pytest.raises(RuntimeError, match="the loop fails"):
        drive([eh.StallWatchdogHook(timeout_secs=60.0)], steps=50, fail_at=5)
    assert not caplog.records
    assert not [thread for thread in threading.enumerate() if thread.name == "stall-watchdog"]


def test_parameter_table():
    variables = {
        "encoder/a/kernel": np.zeros((20, 30), np.float32),
        "encoder/b/kernel": np.zeros(5, np.float16),
        "head": np.zeros(()),
    }
    state = {"encoder/mean": np.zeros(7, np.float32)}
    assert table(variables, state, depth=None).splitlines() == [
        "part                  shape   parameters        bytes",
        "encoder/a/kernel   [20, 30]          600        2,400",
        "encoder/b/kernel        [5]            5           10",
        "head                     []            1            8",
        "not trained                            7           28",
        "total                                613        2,446",
    ]
    assert [line.split()[0] for line in table(variables, {}, depth=2).splitlines()] == [
        "part",
        "encoder/a",
        "encoder/b",
        "head",
        "total",
    ]


def test_parameter_summary_logs_the_table(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    caplog.set_level(logging.INFO)
    run = FakeRun()
    monkeypatch.setattr(FakeRun, "state", SimpleNamespace(variables={"w": np.zeros(3)}, model_state={}))
    drive([eh.ParameterSummaryHook()], steps=1, run=run)
    assert "w                 3           24" in caplog.text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eh.StallWatchdogHook(0), "timeout_secs must be > 0"),
        (lambda: eh.ParameterSummaryHook(0), "ParameterSummaryHook: depth must be at least 1"),
        (lambda: eh.ParameterSummaryHook(2.5), "ParameterSummaryHook: depth must be an integer"),
        (lambda: eh.HistoryHook(0), "every_n_steps must be at least 1"),
        (lambda: eh.ProfilerHook(), "^ProfilerHook: exactly one of save_secs and save_steps"),
        (lambda: eh.ProfilerHook(save_steps=1, save_secs=1), "^ProfilerHook: exactly one of save_secs and save_steps"),
        (lambda: eh.ProfilerHook(save_steps=1, num_steps=0), "^ProfilerHook: num_steps must be at least 1"),
        (lambda: eh.ProfilerHook(save_steps=2.5), "^ProfilerHook: save_steps must be at least 1, and a whole number"),  # type: ignore[arg-type]
        (lambda: eh.ProfilerHook(save_secs=float("nan")), "^ProfilerHook: save_secs must be > 0, given: nan"),
        (lambda: eh.StallWatchdogHook(float("nan")), "^StallWatchdogHook: timeout_secs must be > 0, given: nan"),
        (lambda: eh.ThroughputHook(flops_per_step=0), "flops_per_step must be > 0"),
        (lambda: eh.ThroughputHook(flops_per_step=float("nan")), "flops_per_step must be > 0, given: nan"),
        (
            lambda: eh.GlobalStepWaiterHook(2.5),
            "^GlobalStepWaiterHook: wait_until_step must be at least 0, and a whole",
        ),  # type: ignore[arg-type]
        (lambda: eh.GlobalStepWaiterHook(float("nan")), "^GlobalStepWaiterHook: wait_until_step must be at least 0"),  # type: ignore[arg-type]
        (lambda: eh.GlobalStepWaiterHook(1, float("nan")), "^GlobalStepWaiterHook: timeout_secs must be > 0"),
        (lambda: eh.ThroughputHook(peak_flops=-1), "peak_flops must be > 0"),
        (lambda: eh.ema_of_weights(1.0), "decay must be between 0 and 1"),
    ],
)
def test_refused(make: Any, message: str):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        make()


@pytest.mark.parametrize("steps", [0, 2.5, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "made",
    [
        eh.LearningRateHook,
        eh.GradientNormHook,
        eh.ThroughputHook,
        eh.DeviceMemoryHook,
        eh.TraceHook,
        eh.HistoryHook,
        eh.VariableHistogramsHook,
    ],
)
def test_steps_that_are_not_whole_are_refused_with_the_hook_and_the_argument(made: Any, steps: float):
    with pytest.raises(ValueError, match=f"^{made.__name__}: every_n_steps must be .* whole number, given: {steps}"):
        made(every_n_steps=steps)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eh.LearningRateHook("10"), "^LearningRateHook: every_n_steps must be a number of steps, given: '10'"),  # type: ignore[arg-type]
        (lambda: eh.HistoryHook(True), "^HistoryHook: every_n_steps must be a number of steps, given: True"),
        (lambda: eh.ProfilerHook("10"), "^ProfilerHook: save_steps must be a number of steps, given: '10'"),  # type: ignore[arg-type]
    ],
)
def test_an_interval_that_is_not_a_number_is_refused(make: Any, message: str):
    with pytest.raises(TypeError, match=message):
        make()


def test_profiler_traces_a_step_that_is_not_the_first(tmp_path: Path):
    hook = eh.ProfilerHook(save_steps=5, show_memory=True, num_steps=2)
    run = FakeRun(model_dir=tmp_path)
    drive([hook], steps=8, run=run)
    (profile,) = (tmp_path / "plugins" / "profile").iterdir()
    names = [path.name for path in profile.iterdir()]
    assert any(name.endswith(".xplane.pb") for name in names)
    assert "perfetto_trace.json.gz" in names
    assert (tmp_path / "memory-7.prof").stat().st_size > 0
    assert hook.state() == {"last_step": 6}


def test_profiler_under_way_is_ended_when_the_run_fails(tmp_path: Path):
    hook = eh.ProfilerHook(save_steps=2, output_dir=tmp_path, num_steps=100)
    with pytest.raises(RuntimeError, match="the loop fails"):
        drive([hook], steps=20, fail_at=6)
    assert list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))
