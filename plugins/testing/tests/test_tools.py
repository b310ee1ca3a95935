"""Tests of the tools that the test kit offers in addition to the suites, in real runs."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from estimator_core.builtin_hooks import CheckpointSaverHook
from estimator_core.errors import HookError
from estimator_core.hooks import Hook
from estimator_core.plugins import Plugins
from estimator_testing import (
    FakeRun,
    FaultInjector,
    InjectedError,
    array_format,
    counting_traces,
    drive,
    failing_input_fn,
    run_processes,
    run_with_devices,
    tiny_estimator,
    tiny_input_fn,
    tiny_receiver_fn,
)


@pytest.fixture(scope="module")
def estimator(tmp_path_factory):
    return tiny_estimator(tmp_path_factory.mktemp("tiny")).train(tiny_input_fn(), steps=60)


def test_the_tiny_estimator_learns(estimator):
    assert abs(estimator.get_variable_value("slope") - 3) < 0.3
    assert estimator.evaluate(tiny_input_fn(epochs=1))["average_loss"] < 0.05


@pytest.mark.parametrize("method", ["begin", "after_create", "before_step", "after_step", "end", "state"])
def test_a_fault_is_injected_where_it_is_asked_for(estimator, method):
    injector = FaultInjector(method, step=2)
    with pytest.raises(InjectedError, match=f"fault injected in {method}") as caught:
        estimator.train(tiny_input_fn(), steps=3, hooks=[injector])
    assert injector.raised
    assert any("FaultInjector" in note for note in getattr(caught.value, "__notes__", []))


def test_an_input_fails_at_its_batch(estimator):
    with pytest.raises(InjectedError, match="batch 2"):
        estimator.evaluate(failing_input_fn(tiny_input_fn(epochs=1), at_batch=2))


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="it must be one of begin"):
        FaultInjector("after_stepp")


def test_traces_are_counted(tmp_path):
    estimator = tiny_estimator(tmp_path)
    with counting_traces(estimator) as first:
        estimator.train(tiny_input_fn(), steps=2)
    with counting_traces(estimator) as second:
        estimator.train(tiny_input_fn(), steps=2)
    assert first["train"] == 1
    assert second == {}


def test_code_runs_on_several_devices():
    assert run_with_devices(3, "import jax, sys; print(len(jax.devices()), sys.argv[1])", "word") == "3 word"
    with pytest.raises(Exception, match="no such thing"):
        run_with_devices(1, "raise ValueError('no such thing')")


def test_the_array_format_carries_the_variables(tmp_path):
    plugins = Plugins(autoload=False, extra=[array_format], environ={})
    estimator = tiny_estimator(tmp_path / "model", plugins=plugins).train(tiny_input_fn(), steps=2)
    path = estimator.export_saved_model(str(tmp_path / "exports"), tiny_receiver_fn, format="arrays")
    (format_,) = [plugins.get("format", name)() for name in plugins.names("format")]
    from pathlib import Path

    manifest = format_.load(Path(path)).manifest
    assert manifest["variables"]["slope"] == pytest.approx(float(estimator.get_variable_value("slope")))
    assert manifest["global_step"] == 2


def test_drive_calls_hooks_as_the_loop_does():
    class Every(Hook):
        def __init__(self):
            self.calls = []

        def next_step(self, step):
            return step + 4

        def before_step(self, run, step):
            self.calls.append(("before", step))

        def after_step(self, run, step, out):
            self.calls.append(("after", step, float(out["loss"])))
            if step == 8:
                run.request_stop("enough")

    hook, run = Every(), FakeRun()
    drive([hook], steps=20, run=run, outputs={"loss": float}, steps_per_dispatch=3)
    assert hook.calls == [("before", 3), ("after", 4, 4.0), ("before", 7), ("after", 8, 8.0)]
    assert (run.step, run.stop_reason) == (8, "enough")


@pytest.mark.parametrize("value", ["text", {"a": 1}, None, [object()]])
def test_a_result_that_a_real_run_refuses_is_refused(value):
    run = FakeRun(mode="eval")
    run.add_result("mean", np.float32(2.5))
    with pytest.raises(HookError, match=r"^Result 'best' must be a number, an array or a list of JSON, not "):
        run.add_result("best", value)
    assert run.results == {"mean": 2.5}


def test_drive_names_the_suite_of_a_policy():
    with pytest.raises(
        HookError, match=r"^drive: CheckpointSaverHook is a checkpoint policy.*CheckpointPolicySuite\.$"
    ):
        drive([Hook(), CheckpointSaverHook(save_steps=2)], steps=4)


def test_processes_that_know_each_other():
    code = (
        "import os, sys, time\nme, count = os.environ['JAX_PROCESS_ID'], os.environ['JAX_NUM_PROCESSES']\n"
        "print(me, 'of', count, flush=True)\nwhat = sys.argv[1 + int(me)]\n"
        "time.sleep(60) if what == 'hang' else sys.exit(int(what))"
    )
    done = run_processes([sys.executable, "-c", code, "0", "0"], 2)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["[0] 0 of 2", "[1] 1 of 2"])
    done = run_processes([sys.executable, "-c", code, "75", "hang"], 2, grace=0.5)
    assert (done.returncode, done.stderr) == (75, "process 1 did not end; it is killed.\n")
    assert run_processes([sys.executable, "-c", code, "75", "3"], 2).returncode == 3
    with pytest.raises(subprocess.TimeoutExpired):
        run_processes([sys.executable, "-c", code, "hang", "0"], 2, timeout=1.0)


def test_processes_end_with_an_interrupted_wait(tmp_path, monkeypatch):
    """This happens after Ctrl-C, or after the time limit of a test."""
    code = "import os, sys, time\nopen(os.path.join(sys.argv[1], str(os.getpid())), 'x').close()\ntime.sleep(60)"

    def sleep(seconds):
        if len(os.listdir(tmp_path)) == 2:
            raise KeyboardInterrupt
        time.sleep(seconds)

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=sleep)
    monkeypatch.setattr("estimator_testing.processes.time", clock)
    with pytest.raises(KeyboardInterrupt):
        run_processes([sys.executable, "-c", code, str(tmp_path)], 2)
    for process in map(int, os.listdir(tmp_path)):
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
