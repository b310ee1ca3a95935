"""The typed list of the public names; `__init__.py` imports them when they are first used."""

from estimator_core.hooks import (
    CheckpointListener as CheckpointListener,
)
from estimator_core.hooks import (
    Hook as Hook,
)
from estimator_core.hooks import (
    Run as Run,
)
from estimator_core.hooks import (
    StepOutputs as StepOutputs,
)
from estimator_core.loop.builtin_hooks import (
    CheckpointSaverHook as CheckpointSaverHook,
)
from estimator_core.loop.builtin_hooks import (
    LoggingTensorHook as LoggingTensorHook,
)
from estimator_core.loop.builtin_hooks import (
    NanTensorHook as NanTensorHook,
)
from estimator_core.loop.builtin_hooks import (
    SecondOrStepTimer as SecondOrStepTimer,
)
from estimator_core.loop.builtin_hooks import (
    StepCounterHook as StepCounterHook,
)
from estimator_core.loop.builtin_hooks import (
    StopAtStepHook as StopAtStepHook,
)
from estimator_core.loop.builtin_hooks import (
    SummarySaverHook as SummarySaverHook,
)
from estimator_hooks.averaging import (
    AveragedWeightsEvaluatorHook as AveragedWeightsEvaluatorHook,
)
from estimator_hooks.averaging import (
    ema_of_weights as ema_of_weights,
)
from estimator_hooks.averaging import (
    load_averaged_variables as load_averaged_variables,
)
from estimator_hooks.averaging import (
    write_averaged_checkpoint as write_averaged_checkpoint,
)
from estimator_hooks.device_memory import DeviceMemoryHook as DeviceMemoryHook
from estimator_hooks.early_stopping import (
    make_early_stopping_hook as make_early_stopping_hook,
)
from estimator_hooks.early_stopping import (
    make_stop_at_checkpoint_step_hook as make_stop_at_checkpoint_step_hook,
)
from estimator_hooks.early_stopping import (
    stop_if_higher_hook as stop_if_higher_hook,
)
from estimator_hooks.early_stopping import (
    stop_if_lower_hook as stop_if_lower_hook,
)
from estimator_hooks.early_stopping import (
    stop_if_no_decrease_hook as stop_if_no_decrease_hook,
)
from estimator_hooks.early_stopping import (
    stop_if_no_increase_hook as stop_if_no_increase_hook,
)
from estimator_hooks.final_ops import FinalOpsHook as FinalOpsHook
from estimator_hooks.global_step_waiter import GlobalStepWaiterHook as GlobalStepWaiterHook
from estimator_hooks.gradient_norm import GradientNormHook as GradientNormHook
from estimator_hooks.gradient_transformations import (
    GRADIENT_TRANSFORMATIONS as GRADIENT_TRANSFORMATIONS,
)
from estimator_hooks.gradient_transformations import (
    with_transformations as with_transformations,
)
from estimator_hooks.history import (
    HistoryHook as HistoryHook,
)
from estimator_hooks.history import (
    read_history as read_history,
)
from estimator_hooks.history import (
    save_history as save_history,
)
from estimator_hooks.history import (
    to_dataframe as to_dataframe,
)
from estimator_hooks.in_memory_evaluator import InMemoryEvaluatorHook as InMemoryEvaluatorHook
from estimator_hooks.iterator_initializer import IteratorInitializerHook as IteratorInitializerHook
from estimator_hooks.learning_rate import LearningRateHook as LearningRateHook
from estimator_hooks.parameter_summary import ParameterSummaryHook as ParameterSummaryHook
from estimator_hooks.profiler import ProfilerHook as ProfilerHook
from estimator_hooks.progress import ProgressBarHook as ProgressBarHook
from estimator_hooks.stall_watchdog import StallWatchdogHook as StallWatchdogHook
from estimator_hooks.throughput import ThroughputHook as ThroughputHook
from estimator_hooks.trackers import (
    MlflowTracker as MlflowTracker,
)
from estimator_hooks.trackers import (
    TrackedRun as TrackedRun,
)
from estimator_hooks.trackers import (
    Tracker as Tracker,
)
from estimator_hooks.trackers import (
    TrackerHook as TrackerHook,
)
from estimator_hooks.trackers import (
    WandbTracker as WandbTracker,
)

__version__: str
