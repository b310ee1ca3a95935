"""The typed list of the public names; `__init__.py` imports them when they are first used."""

from estimator_core.builtin_hooks import (
    CheckpointSaverHook,
    LoggingTensorHook,
    NanTensorHook,
    SecondOrStepTimer,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from estimator_core.hooks import CheckpointListener, Hook, Run, StepOutputs, Wake
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
from estimator_hooks.feed_fn import FeedFnHook
from estimator_hooks.final_ops import FinalOpsHook
from estimator_hooks.global_step_waiter import GlobalStepWaiterHook
from estimator_hooks.goodput import GoodputHook
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
from estimator_hooks.telemetry import JsonLogHook, TraceHook
from estimator_hooks.tensorboard import GraphHook, HParamsHook, VariableHistogramsHook
from estimator_hooks.throughput import ThroughputHook
from estimator_hooks.trackers import (
    CometTracker,
    MlflowTracker,
    NeptuneTracker,
    TrackedRun,
    Tracker,
    TrackerHook,
    WandbTracker,
)

__all__ = [
    "AveragedWeightsEvaluatorHook",
    "CheckpointListener",
    "CheckpointSaverHook",
    "CometTracker",
    "DeviceMemoryHook",
    "FeedFnHook",
    "FinalOpsHook",
    "GRADIENT_TRANSFORMATIONS",
    "GlobalStepWaiterHook",
    "GoodputHook",
    "GradientNormHook",
    "GraphHook",
    "HParamsHook",
    "HistoryHook",
    "Hook",
    "InMemoryEvaluatorHook",
    "IteratorInitializerHook",
    "JsonLogHook",
    "LearningRateHook",
    "LoggingTensorHook",
    "MlflowTracker",
    "NeptuneTracker",
    "NanTensorHook",
    "ParameterSummaryHook",
    "ProfilerHook",
    "ProgressBarHook",
    "Run",
    "SecondOrStepTimer",
    "StallWatchdogHook",
    "StepCounterHook",
    "StepOutputs",
    "StopAtStepHook",
    "SummarySaverHook",
    "ThroughputHook",
    "TraceHook",
    "TrackedRun",
    "Tracker",
    "TrackerHook",
    "VariableHistogramsHook",
    "Wake",
    "WandbTracker",
    "ema_of_weights",
    "load_averaged_variables",
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "read_history",
    "save_history",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
    "to_dataframe",
    "with_transformations",
    "write_averaged_checkpoint",
]

__version__: str
