"""Runs the conformance suite on the built-in hooks."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from estimator_core._builtin_hooks.logging_tensor import LoggingTensorHook
from estimator_core._builtin_hooks.nan_tensor import NanTensorHook
from estimator_core._builtin_hooks.step_counter import StepCounterHook
from estimator_core._builtin_hooks.stop_at_step import StopAtStepHook
from estimator_core._builtin_hooks.summary_saver import SummarySaverHook
from estimator_core.hooks import Hook
from estimator_core.testing import HookSuite


class TestLoggingTensorHook(HookSuite):
    def make(self) -> Hook:
        return LoggingTensorHook(["loss", "step"], every_n_iter=7, at_end=True)


class TestSummarySaverHook(HookSuite):
    def make(self) -> Hook:
        return SummarySaverHook(save_steps=7)

    def outputs(self) -> Mapping[str, Callable[[int], Any]]:
        return {"loss": lambda step: np.float32(step), "accuracy": lambda step: np.float32(0.5)}


class TestStepCounterHook(HookSuite):
    def make(self) -> Hook:
        return StepCounterHook(every_n_steps=7)


class TestStopAtStepHook(HookSuite):
    def make(self) -> Hook:
        return StopAtStepHook(last_step=1000)


class TestNanTensorHook(HookSuite):
    def make(self) -> Hook:
        return NanTensorHook()

    def outputs(self) -> Mapping[str, Callable[[int], Any]]:
        return {"loss": lambda step: np.float32(step), "first_bad_step": lambda step: np.int32(0)}
