"""The hooks a run without plugins needs, and what hooks that read outputs are made of."""

from estimator_core._builtin_hooks.checkpoint_saver import CheckpointSaverHook
from estimator_core._builtin_hooks.logging_tensor import LoggingTensorHook
from estimator_core._builtin_hooks.nan_tensor import NanTensorHook
from estimator_core._builtin_hooks.output_names import PresentNames, check_known
from estimator_core._builtin_hooks.step_counter import StepCounterHook
from estimator_core._builtin_hooks.stop_at_step import StopAtStepHook
from estimator_core._builtin_hooks.summary_saver import SummarySaverHook
from estimator_core._builtin_hooks.timer import SecondOrStepTimer

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
