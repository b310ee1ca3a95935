"""Test tools for plugin authors: conformance suites to subclass, and small objects to test against.

Also importable as `estimator_core.testing`. Each name is imported at its first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_testing import array_format as array_format
    from estimator_testing import simulation as simulation
    from estimator_testing.backend_suite import BackendSuite as BackendSuite
    from estimator_testing.checkpoint_policy_suite import CheckpointPolicySuite as CheckpointPolicySuite
    from estimator_testing.coordinator_suite import CoordinatorSuite as CoordinatorSuite
    from estimator_testing.devices import run_with_devices as run_with_devices
    from estimator_testing.export_check_suite import ExportCheckSuite as ExportCheckSuite
    from estimator_testing.export_format_suite import ExportFormatSuite as ExportFormatSuite
    from estimator_testing.exporter_suite import ExporterSuite as ExporterSuite
    from estimator_testing.fake_run import FakeRun as FakeRun
    from estimator_testing.faults import FaultInjector as FaultInjector
    from estimator_testing.faults import InjectedError as InjectedError
    from estimator_testing.faults import failing_input_fn as failing_input_fn
    from estimator_testing.head_suite import HeadSuite as HeadSuite
    from estimator_testing.hook_driver import drive as drive
    from estimator_testing.hook_suite import HookSuite as HookSuite
    from estimator_testing.host_transform_suite import HostTransformSuite as HostTransformSuite
    from estimator_testing.initial_values_suite import InitialValuesSuite as InitialValuesSuite
    from estimator_testing.input_suite import InputSuite as InputSuite
    from estimator_testing.losing_proxy import LosingProxy as LosingProxy
    from estimator_testing.model_suite import ModelSuite as ModelSuite
    from estimator_testing.module_adapter_suite import ModuleAdapterSuite as ModuleAdapterSuite
    from estimator_testing.module_runner import ModuleRunner as ModuleRunner
    from estimator_testing.plugin_suite import PluginSuite as PluginSuite
    from estimator_testing.processes import run_processes as run_processes
    from estimator_testing.storage_suite import StorageSuite as StorageSuite
    from estimator_testing.suite import Suite as Suite
    from estimator_testing.suite import overrides as overrides
    from estimator_testing.tiny import tiny_estimator as tiny_estimator
    from estimator_testing.tiny import tiny_input_fn as tiny_input_fn
    from estimator_testing.tiny import tiny_model_fn as tiny_model_fn
    from estimator_testing.tiny import tiny_receiver_fn as tiny_receiver_fn
    from estimator_testing.traces import counting_traces as counting_traces

__version__ = "0.1.0"

_SUBMODULES = ("array_format", "simulation")
_HOME = {
    "BackendSuite": "backend_suite",
    "CheckpointPolicySuite": "checkpoint_policy_suite",
    "CoordinatorSuite": "coordinator_suite",
    "ExportCheckSuite": "export_check_suite",
    "ExportFormatSuite": "export_format_suite",
    "ExporterSuite": "exporter_suite",
    "FakeRun": "fake_run",
    "FaultInjector": "faults",
    "HeadSuite": "head_suite",
    "HookSuite": "hook_suite",
    "HostTransformSuite": "host_transform_suite",
    "InitialValuesSuite": "initial_values_suite",
    "InjectedError": "faults",
    "InputSuite": "input_suite",
    "ModelSuite": "model_suite",
    "ModuleAdapterSuite": "module_adapter_suite",
    "ModuleRunner": "module_runner",
    "PluginSuite": "plugin_suite",
    "LosingProxy": "losing_proxy",
    "StorageSuite": "storage_suite",
    "Suite": "suite",
    "counting_traces": "traces",
    "drive": "hook_driver",
    "failing_input_fn": "faults",
    "overrides": "suite",
    "run_processes": "processes",
    "run_with_devices": "devices",
    "tiny_estimator": "tiny",
    "tiny_input_fn": "tiny",
    "tiny_model_fn": "tiny",
    "tiny_receiver_fn": "tiny",
}
__all__ = [*_HOME, *_SUBMODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, *_SUBMODULES])
