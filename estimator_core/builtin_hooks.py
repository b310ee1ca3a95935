"""The hooks a run without plugins needs, and what hooks that read outputs are made of."""

from estimator_core._builtin_hooks import (
    CheckpointSaverHook,
    LoggingTensorHook,
    NanTensorHook,
    SecondOrStepTimer,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from estimator_core._builtin_hooks.output_names import PresentNames, check_known

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
]
