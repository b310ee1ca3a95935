"""Tests of the display before the first step: input, first batch, checkpoint, compilation."""

import io
import threading
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.testing import FakeRun, drive
from estimator_hooks import plugin
from estimator_hooks.progress import display
from estimator_hooks.progress.figures import Figures
from estimator_hooks.progress.lines import LineDisplay
from estimator_hooks.progress.ticker import Ticker
from estimator_hooks.progress.waiting import COMPILING, FIRST_BATCH, begin_waiting, forget, waiting


class Watched:
    """A display that records its calls."""

    refresh_secs = 0.01
    live = True

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def open(self, name: str, *, inside: bool) -> int:
        self.told.append(("open", name))
        return 0

    def wait(self, call: int, text: str, elapsed: float) -> None:
        if ("wait", text) not in self.told:
            self.told.append(("wait", text))

    def show(self, call: int, figures: Figures) -> None:
        self.told.append(("show", figures.done))

    def close(self, call: int, figures: Figures | None) -> None:
        self.told.append(("close", figures and figures.done))

    def drop(self, call: int) -> None:
        self.told.append(("drop", call))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    shown = Watched()
    monkeypatch.setattr(display, "make_display", lambda output: shown)
    return shown


def until(shown: Watched, text: str) -> None:
    limit = time.monotonic() + 20
    while ("wait", text) not in shown.told and time.monotonic() < limit:
        time.sleep(0.005)
    assert ("wait", text) in shown.told


def test_the_stages_of_a_resumed_training(watched: Watched) -> None:
    run = FakeRun(first_step=120, activity="input")
    plugin.estimator_run_start(run)
    until(watched, "opening the input")
    hook = eh.ProgressBarHook()
    hook.begin(run)
    until(watched, "reading the first batch")
    run.activity = "step"
    until(watched, "restoring the checkpoint of step 120")
    hook.after_create(run)
    until(watched, "compiling the first step")
    hook.after_step(run, 121, {"loss": 0.5})  # type: ignore[arg-type]
    assert waiting(run) is None
    hook.end(run)
    plugin.estimator_run_end(run)
    assert [what for what, _ in watched.told if what != "wait"] == ["open", "show", "close"]
    assert display.shared._displays == {}


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (FakeRun(), "tracing the model, making initial values"),
        (FakeRun(first_step=5), "restoring the checkpoint of step 5"),
        (FakeRun(first_step=5, activity="input"), "reading the first batch"),
        (FakeRun(mode="eval", first_step=5), "reading the first batch"),
    ],
)
def test_what_comes_before_the_model_is_there(watched: Watched, run: FakeRun, text: str) -> None:
    begin_waiting(run)
    found = waiting(run)
    assert found is not None
    found.at(FIRST_BATCH)
    assert found.text() == text
    forget(run)


def test_a_run_that_fails_before_its_first_step_leaves_nothing(watched: Watched) -> None:
    run = FakeRun()
    plugin.estimator_run_start(run)
    plugin.estimator_run_end(run)
    assert watched.told[-1] == ("close", None)
    assert waiting(run) is None
    assert display.shared._displays == {}
    assert no_thread_is_left()
    forget(run)  # a second call does nothing


def test_a_hook_with_its_own_output_takes_the_place_of_the_announcement(watched: Watched) -> None:
    run, output = FakeRun(), io.StringIO()
    begin_waiting(run)
    drive([eh.ProgressBarHook(output)], steps=3, run=run)
    assert waiting(run) is None
    assert display.shared._displays == {}


def test_lines_tell_of_a_long_wait_only(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    shown = LineDisplay(output)
    shown.refresh_secs = 0.02
    monkeypatch.setattr(display, "make_display", lambda output: shown)
    run = FakeRun()
    begin_waiting(run)
    found = waiting(run)
    assert found is not None
    found.at(COMPILING)
    limit = time.monotonic() + 20
    while not output.getvalue() and time.monotonic() < limit:
        time.sleep(0.005)
    forget(run)
    assert output.getvalue().splitlines()[-1] == "train: compiling the first step, 0:00:00"


@pytest.mark.parametrize("mode", ["train", "eval", "infer"])
def test_quiet_shows_nothing(watched: Watched, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("ESTIMATOR_QUIET", "1")
    run = FakeRun(mode=mode)
    assert plugin.estimator_run_hooks(run) == []
    plugin.estimator_run_start(run)
    plugin.estimator_run_end(run)
    assert watched.told == []


def test_a_call_leaves_no_thread(tmp_path: Path) -> None:
    """Observers and hooks receive different views of one run."""

    def model_fn(features: Any, mode: str) -> ec.EstimatorSpec:
        loss = ec.get_variable("w", ()) * jnp.mean(features["x"])
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))

    estimator = ec.Estimator(model_fn, model_dir=str(tmp_path))
    input_fn = ec.inputs.numpy_input_fn({"x": np.ones(8, np.float32)}, batch_size=8, num_epochs=1, shuffle=False)
    estimator.train(input_fn, steps=1).evaluate(input_fn)
    assert no_thread_is_left()


def no_thread_is_left(limit: float = 5) -> bool:
    """Whether the thread that shows progress ends soon."""
    until = time.monotonic() + limit
    while alive := [thread for thread in threading.enumerate() if thread.name == "progress"]:
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    return not alive


def test_one_thread_serves_calls_that_follow_each_other() -> None:
    """Starting and joining a thread takes as long as an evaluation of several batches."""
    ticker, called = Ticker(), threading.Event()
    threads: set[int | None] = set()
    for _ in range(3):
        ticker.add(called.set, every=0.001)
        threads.add(ticker._thread and ticker._thread.ident)
        assert called.wait(20)
        ticker.remove(called.set)
        called.clear()
    assert len(threads) == 1
    assert None not in threads
    assert not called.wait(0.05)  # a removed function is not called again
    assert no_thread_is_left()
