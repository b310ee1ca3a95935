"""The hooks that a run without plugins needs, and parts of hooks that read outputs."""

from estimator_core._builtin_hooks.cadence import CheckpointSaverHook
from estimator_core._builtin_hooks.hook_parts import PresentNames, SecondOrStepTimer, check_known, point_step
from estimator_core._builtin_hooks.recording import StepCounterHook, SummarySaverHook
from estimator_core._builtin_hooks.stop_at_step import StopAtStepHook
from estimator_core._builtin_hooks.watching import LoggingTensorHook, NanTensorHook

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
    "point_step",
]
