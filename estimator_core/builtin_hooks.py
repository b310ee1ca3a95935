"""The hooks that a run without plugins needs, and parts of hooks that read outputs."""

from estimator_core._builtin_hooks.checkpoint_saver import CheckpointSaverHook
from estimator_core._builtin_hooks.hook_parts import (
    PresentNames,
    SecondOrStepTimer,
    check_known,
    checked_interval,
    point_step,
    positive_secs,
    whole_steps,
)
from estimator_core._builtin_hooks.logging_tensor import LoggingTensorHook
from estimator_core._builtin_hooks.nan_tensor import NanTensorHook
from estimator_core._builtin_hooks.step_counter import StepCounterHook
from estimator_core._builtin_hooks.stop_at_step import StopAtStepHook
from estimator_core._builtin_hooks.summary_saver import SummarySaverHook

__all__ = [
    "CheckpointSaverHook",
    "LoggingTensorHook",
    "NanTensorHook",
    "PresentNames",
    "SecondOrStepTimer",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "check_known",
    "checked_interval",
    "point_step",
    "positive_secs",
    "whole_steps",
]
