"""Hooks for estimator-core: logging, progress, early stopping, iterator initialisation, profiling and more.

The hooks a run without plugins has are those of the core, given here too, so that everything is found in one place.
Importing this package imports none of them: every public name is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_core.hooks import CheckpointListener, Hook, Run, StepOutputs
    from estimator_core.loop.builtin_hooks import (
        CheckpointSaverHook,
        LoggingTensorHook,
        NanTensorHook,
        SecondOrStepTimer,
        StepCounterHook,
        StopAtStepHook,
        SummarySaverHook,
    )
    from estimator_hooks.averaging import (
        AveragedWeightsEvaluatorHook,
        ema_of_weights,
        load_averaged_variables,
        write_averaged_checkpoint,
    )
    from estimator_hooks.device_memory import DeviceMemoryHook
    from estimator_hooks.early_stopping import (
        make_early_stopping_hook,
        make_stop_at_checkpoint_step_hook,
        stop_if_higher_hook,
        stop_if_lower_hook,
        stop_if_no_decrease_hook,
        stop_if_no_increase_hook,
    )
    from estimator_hooks.final_ops import FinalOpsHook
    from estimator_hooks.global_step_waiter import GlobalStepWaiterHook
    from estimator_hooks.gradient_norm import GradientNormHook
    from estimator_hooks.gradient_transformations import GRADIENT_TRANSFORMATIONS, with_transformations
    from estimator_hooks.history import HistoryHook, read_history, save_history, to_dataframe
    from estimator_hooks.in_memory_evaluator import InMemoryEvaluatorHook
    from estimator_hooks.iterator_initializer import IteratorInitializerHook
    from estimator_hooks.learning_rate import LearningRateHook
    from estimator_hooks.parameter_summary import ParameterSummaryHook
    from estimator_hooks.profiler import ProfilerHook
    from estimator_hooks.progress import ProgressBarHook
    from estimator_hooks.stall_watchdog import StallWatchdogHook
    from estimator_hooks.throughput import ThroughputHook
    from estimator_hooks.trackers import MlflowTracker, TrackedRun, Tracker, TrackerHook, WandbTracker

__version__ = "0.1.0"

_CORE_HOOKS = "estimator_core.loop.builtin_hooks"
_HOME = {
    "estimator_core.hooks": ("CheckpointListener", "Hook", "Run", "StepOutputs"),
    _CORE_HOOKS: (
        "CheckpointSaverHook",
        "LoggingTensorHook",
        "NanTensorHook",
        "SecondOrStepTimer",
        "StepCounterHook",
        "StopAtStepHook",
        "SummarySaverHook",
    ),
    "estimator_hooks.averaging": (
        "AveragedWeightsEvaluatorHook",
        "ema_of_weights",
        "load_averaged_variables",
        "write_averaged_checkpoint",
    ),
    "estimator_hooks.device_memory": ("DeviceMemoryHook",),
    "estimator_hooks.early_stopping": (
        "make_early_stopping_hook",
        "make_stop_at_checkpoint_step_hook",
        "stop_if_higher_hook",
        "stop_if_lower_hook",
        "stop_if_no_decrease_hook",
        "stop_if_no_increase_hook",
    ),
    "estimator_hooks.final_ops": ("FinalOpsHook",),
    "estimator_hooks.global_step_waiter": ("GlobalStepWaiterHook",),
    "estimator_hooks.gradient_norm": ("GradientNormHook",),
    "estimator_hooks.gradient_transformations": ("GRADIENT_TRANSFORMATIONS", "with_transformations"),
    "estimator_hooks.history": ("HistoryHook", "read_history", "save_history", "to_dataframe"),
    "estimator_hooks.in_memory_evaluator": ("InMemoryEvaluatorHook",),
    "estimator_hooks.iterator_initializer": ("IteratorInitializerHook",),
    "estimator_hooks.learning_rate": ("LearningRateHook",),
    "estimator_hooks.parameter_summary": ("ParameterSummaryHook",),
    "estimator_hooks.profiler": ("ProfilerHook",),
    "estimator_hooks.progress": ("ProgressBarHook",),
    "estimator_hooks.stall_watchdog": ("StallWatchdogHook",),
    "estimator_hooks.throughput": ("ThroughputHook",),
    "estimator_hooks.trackers": ("MlflowTracker", "TrackedRun", "Tracker", "TrackerHook", "WandbTracker"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
