"""Tests of hooks that write curves: learning rate, gradient norm, throughput, device memory."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_hooks as eh
from estimator_core.config import RunConfig
from estimator_core.errors import HookError
from estimator_core.testing import FakeRun, drive
from estimator_hooks import throughput
from plugins.hooks.tests.small_model import eval_input_fn, make_estimator, train_input_fn

OUTPUTS: dict[str, Callable[[int], Any]] = {
    "loss": lambda step: np.float32(1.0),
    "learning_rate": lambda step: np.float32(0.5**step),
    "learning_rate_2": lambda step: np.float32(0.25),
    "gradient_norm": lambda step: np.float32(step),
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)


def run_without_summaries() -> FakeRun:
    return FakeRun(config=RunConfig(model_dir="model_dir", save_summary_steps=None))


def points(run: FakeRun, tag: str) -> list[tuple[int, float]]:
    return [(step, value) for kind, name, step, value in run.summaries.recorded if (kind, name) == ("scalar", tag)]


@pytest.mark.parametrize("k", [1, 3])
def test_learning_rates(caplog: pytest.LogCaptureFixture, k: int):
    caplog.set_level(logging.INFO)
    run = drive([eh.LearningRateHook(4)], steps=9, outputs=OUTPUTS, run=run_without_summaries(), steps_per_dispatch=k)
    assert points(run, "learning_rate") == [(1, 0.5), (5, 0.5**5), (9, 0.5**9)]
    assert [step for step, _ in points(run, "learning_rate_2")] == [1, 5, 9]
    assert "learning_rate = 0.5, learning_rate_2 = 0.25, step = 1" in caplog.text


def test_a_point_that_the_summary_saver_writes_is_not_written_twice():
    run = drive([eh.LearningRateHook(4)], steps=9, outputs=OUTPUTS)
    assert points(run, "learning_rate") == []


def test_the_points_of_an_evaluation_are_at_the_step_of_its_weights(tmp_path: Path):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    estimator = make_estimator(tmp_path / "run").train(train_input_fn(), steps=9)
    hooks = [eh.ThroughputHook(1), eh.DeviceMemoryHook(1), eh.VariableHistogramsHook(1)]
    estimator.evaluate(eval_input_fn(), hooks=hooks)
    events = accumulators.EventAccumulator(estimator.eval_dir(), size_guidance={"scalars": 0, "histograms": 0}).Reload()
    tags: Any = events.Tags()
    memory = next(tag for tag in tags["scalars"] if tag.startswith("device_memory/"))
    assert [event.step for event in events.Scalars("examples/sec")] == [9] * 3
    assert [event.step for event in events.Scalars(memory)] == [9] * 4
    assert [event.step for event in events.Histograms("variables/dense/bias")] == [9] * 4


def test_no_learning_rate():
    with pytest.raises(HookError, match=r"Build it as optax\.inject_hyperparams"):
        drive([eh.LearningRateHook()], steps=1)


def test_gradient_norm_is_asked_for():
    run = drive([eh.GradientNormHook(4)], steps=9, outputs=OUTPUTS, run=run_without_summaries())
    assert run.fetched == ["gradient_norm"]
    assert points(run, "gradient_norm") == [(1, 1.0), (5, 5.0), (9, 9.0)]
    with pytest.raises(HookError, match="computes no gradients"):
        drive([eh.GradientNormHook()], steps=1)


@pytest.mark.parametrize("killed", [1, 4, 5, 6])
@pytest.mark.parametrize(
    "make", [lambda: eh.LearningRateHook(4), lambda: eh.GradientNormHook(4), lambda: eh.DeviceMemoryHook(4)]
)
def test_resume_gives_the_points_of_an_uninterrupted_run(make: Callable[[], Any], killed: int):
    def steps_of(run: FakeRun) -> list[int]:
        return [step for _, _, step, _ in run.summaries.recorded]

    straight = drive([make()], steps=14, outputs=OUTPUTS, run=run_without_summaries())
    hook, run = make(), run_without_summaries()
    drive([hook], steps=killed, outputs=OUTPUTS, run=run)
    state = json.loads(json.dumps(hook.state()))
    resumed = run_without_summaries()
    resumed.step = killed
    drive([make()], steps=14 - killed, outputs=OUTPUTS, run=resumed, resume=[state])
    assert steps_of(run) + steps_of(resumed) == steps_of(straight)


def test_throughput(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(throughput.time, "monotonic", lambda: now[0])

    def loss(step: int) -> Any:
        now[0] = 100.0 + 0.25 * step  # four steps a second
        return np.float32(1.0)

    hook = eh.ThroughputHook(5, flops_per_step=1e9, peak_flops=16e9)
    run = drive([hook], steps=11, outputs={"loss": loss}, run=FakeRun(batch_size=8))
    assert points(run, "examples/sec") == [(6, 32.0), (11, 32.0)]
    assert points(run, "flops/sec") == [(6, 4e9), (11, 4e9)]
    assert points(run, "mfu") == [(6, 0.25), (11, 0.25)]


def test_throughput_counts_the_examples_of_its_own_step(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(throughput.time, "monotonic", lambda: now[0])
    run = FakeRun()

    def loss(step: int) -> Any:
        now[0] = 100.0 + step
        run.batch_size = 64 if step in (1, 6, 11) else 8
        return np.float32(1.0)

    drive([eh.ThroughputHook(5, flops_per_step=1e9)], steps=14, outputs={"loss": loss}, run=run, late=True)
    assert points(run, "examples/sec") == [(6, 64.0), (11, 64.0)]


def test_throughput_without_known_peak(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(throughput, "peak_flops_of_devices", lambda: None)
    run = drive([eh.ThroughputHook(2, flops_per_step=1e9)], steps=5)
    assert points(run, "mfu") == []
    assert len(points(run, "flops/sec")) == 2
    assert "no backend knows the peak" in caplog.text


def test_the_peak_comes_from_the_backends(monkeypatch: pytest.MonkeyPatch):
    from estimator_core import plugins
    from estimator_hooks.peak_flops import peak_flops_of_devices

    class Known:
        def peak_flops(self, device_kind: str, dtype: str) -> float | None:
            return {"float32": 3e12}.get(dtype)

    class Registry:
        def automatic(self, kind: str) -> list[str]:
            return ["a"]

        def get(self, kind: str, name: str) -> Any:
            return Known

    monkeypatch.setattr(plugins, "default_plugins", Registry)
    import jax

    assert peak_flops_of_devices() == 3e12 * len(jax.devices())
    assert peak_flops_of_devices("int4") is None


def test_device_memory_counts_live_arrays_where_devices_count_nothing():
    import jax.numpy as jnp

    kept = jnp.zeros((1024, 1024), jnp.float32)
    run = drive([eh.DeviceMemoryHook(10)], steps=1)
    ((_, tag, step, value),) = run.summaries.recorded
    assert (tag, step) == ("device_memory/live_array_bytes", 1)
    assert value >= kept.nbytes
