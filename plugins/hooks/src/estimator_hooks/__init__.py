"""Hooks for estimator-core: logging, progress, early stopping, iterator initialisation, profiling and more.

The hooks of the core, which every run without plugins has, are also available here. Each public name is imported when
it is first used. `__init__.pyi` is the typed list of the names.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_CORE_HOOKS = "estimator_core.builtin_hooks"
_HOME = {
    "estimator_core.hooks": ("CheckpointListener", "Hook", "Run", "StepOutputs", "Wake"),
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
    "estimator_hooks.feed_fn": ("FeedFnHook",),
    "estimator_hooks.final_ops": ("FinalOpsHook",),
    "estimator_hooks.global_step_waiter": ("GlobalStepWaiterHook",),
    "estimator_hooks.goodput": ("GoodputHook",),
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
    "estimator_hooks.tensorboard": ("GraphHook", "HParamsHook", "VariableHistogramsHook"),
    "estimator_hooks.telemetry": ("JsonLogHook", "TraceHook"),
    "estimator_hooks.throughput": ("ThroughputHook",),
    "estimator_hooks.trackers": (
        "CometTracker",
        "MlflowTracker",
        "NeptuneTracker",
        "TrackedRun",
        "Tracker",
        "TrackerHook",
        "WandbTracker",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = [*_MODULE_OF]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
