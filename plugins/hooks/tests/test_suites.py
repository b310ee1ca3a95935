"""Runs the conformance suite of the core on every hook of this package that has a state or a cadence."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimator_hooks as eh
from estimator_core.summaries import append_eval_metrics
from estimator_core.testing import HookSuite


class TestLearningRateHook(HookSuite):
    def make(self) -> eh.Hook:
        return eh.LearningRateHook(7)

    def outputs(self) -> Mapping[str, Callable[[int], Any]]:
        return {"loss": lambda step: np.float32(step), "learning_rate": lambda step: np.float32(0.5)}


class TestGradientNormHook(HookSuite):
    def make(self) -> eh.Hook:
        return eh.GradientNormHook(7)

    def outputs(self) -> Mapping[str, Callable[[int], Any]]:
        return {"loss": lambda step: np.float32(step), "gradient_norm": lambda step: np.float32(0.5)}


class TestThroughputHook(HookSuite):
    measured = frozenset({"examples/sec"})

    def make(self) -> eh.Hook:
        return eh.ThroughputHook(7)


class TestDeviceMemoryHook(HookSuite):
    def make(self) -> eh.Hook:
        return eh.DeviceMemoryHook(7)


class TestStallWatchdogHook(HookSuite):
    def make(self) -> eh.Hook:
        return eh.StallWatchdogHook(1000.0)


class TestProgressBarHook(HookSuite):
    def make(self) -> eh.Hook:
        return eh.ProgressBarHook()


class TestFinalOpsHook(HookSuite):
    def make(self) -> eh.Hook:
        return eh.FinalOpsHook("loss")


class TestHistoryHook(HookSuite):
    @pytest.fixture(autouse=True)
    def directory(self, tmp_path: Path) -> None:
        self.path = tmp_path

    def make(self) -> eh.Hook:
        return eh.HistoryHook(2, self.path)


class TestGoodputHook(HookSuite):
    def make(self) -> eh.Hook:
        return eh.GoodputHook()


class TestFeedFnHook(HookSuite):
    def make(self) -> eh.Hook:
        return eh.FeedFnHook(lambda features, labels: (features, labels))


class TestProfilerHook(HookSuite):
    @pytest.fixture(autouse=True)
    def no_trace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replaces the profiler, because a real trace takes half a second. Another test makes one."""
        import jax

        monkeypatch.setattr(jax.profiler, "start_trace", lambda *args, **named: None)
        monkeypatch.setattr(jax.profiler, "stop_trace", lambda: None)

    def make(self) -> eh.Hook:
        return eh.ProfilerHook(save_steps=7)


class TestEarlyStopping(HookSuite):
    @pytest.fixture(autouse=True)
    def evaluations(self, tmp_path: Path) -> None:
        self.path = str(tmp_path)
        for step in range(0, 40, 5):
            append_eval_metrics(self.path, step, {"loss": 1.0 / (1 + step)}, None)

    def make(self) -> eh.Hook:
        return eh.stop_if_no_decrease_hook(SimpleNamespace(eval_dir=str), "loss", 100, self.path, run_every_steps=7)


class TestMakeEarlyStoppingHook(HookSuite):
    def make(self) -> eh.Hook:
        return eh.make_early_stopping_hook(SimpleNamespace(eval_dir=str), lambda: False, run_every_steps=7)
