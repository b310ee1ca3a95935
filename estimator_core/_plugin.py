"""The declarations of the core itself, in the same records as those of any plugin. It is imported at start-up, so it
imports nothing heavy.
"""

from __future__ import annotations

from estimator_core._plugins.records import Component

ESTIMATOR_PLUGIN_API = (1, 0)

_SAVER = "checkpoint_saver:CheckpointSaverHook"
_HOOKS = (
    ("checkpoint_saver", _SAVER, "Saves checkpoints at a cadence."),
    ("logging_tensor", "logging_tensor:LoggingTensorHook", "Logs outputs of the step."),
    ("nan_tensor", "nan_tensor:NanTensorHook", "Stops when the loss is no longer finite."),
    ("step_counter", "step_counter:StepCounterHook", "Steps and examples per second."),
    ("stop_at_step", "stop_at_step:StopAtStepHook", "Stops at a step."),
    ("summary_saver", "summary_saver:SummarySaverHook", "Writes summaries to the event file."),
)
_EXPORT_CHECKS = (("close", "CloseOutputs", "No value differs by more than a small share of the largest."),)


def estimator_components() -> list[Component]:
    """Returns the components that a run without plugins can use."""
    return [
        _component("backend", "cpu", "_backends.contract:CPUBackend", "The processors of this machine."),
        *(_component("export_check", name, f"export:{class_}", text) for name, class_, text in _EXPORT_CHECKS),
        _component("adapter", "function", "_model.module:FunctionAdapter", "Plain functions."),
        *(_component("hook", name, f"_builtin_hooks.{target}", text) for name, target, text in _HOOKS),
        _component("checkpoint_policy", "cadence", f"_builtin_hooks.{_SAVER}", "Saves every so many steps or seconds."),
        _component("input", "numpy", "inputs:numpy_input_fn", "Batches of numpy arrays in memory."),
        _component("transform", "rename", "export:Rename", "Other names for arrays."),
    ]


def _component(kind: str, name: str, target: str, summary: str) -> Component:
    return Component(kind=kind, name=name, target=f"estimator_core.{target}", summary=summary)
