"""Conformance suites for authors of plugins: subclass one, say how your component is made, and get real tests.

Needs pytest (`pip install "estimator-core[test]"`). Nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_core.testing.backend_suite import BackendSuite as BackendSuite
    from estimator_core.testing.export_format_suite import ExportFormatSuite as ExportFormatSuite
    from estimator_core.testing.exporter_suite import ExporterSuite as ExporterSuite
    from estimator_core.testing.fake_run import FakeRun as FakeRun
    from estimator_core.testing.fake_run import drive as drive
    from estimator_core.testing.head_suite import HeadSuite as HeadSuite
    from estimator_core.testing.hook_suite import HookSuite as HookSuite
    from estimator_core.testing.host_transform_suite import HostTransformSuite as HostTransformSuite
    from estimator_core.testing.input_suite import InputSuite as InputSuite
    from estimator_core.testing.model_suite import ModelSuite as ModelSuite
    from estimator_core.testing.module_adapter_suite import ModuleAdapterSuite as ModuleAdapterSuite
    from estimator_core.testing.module_runner import ModuleRunner as ModuleRunner
    from estimator_core.testing.plugin_suite import PluginSuite as PluginSuite
    from estimator_core.testing.suite import Suite as Suite
    from estimator_core.testing.suite import overrides as overrides

_HOME = {
    "BackendSuite": "backend_suite",
    "ExportFormatSuite": "export_format_suite",
    "ExporterSuite": "exporter_suite",
    "FakeRun": "fake_run",
    "HeadSuite": "head_suite",
    "HookSuite": "hook_suite",
    "HostTransformSuite": "host_transform_suite",
    "InputSuite": "input_suite",
    "ModelSuite": "model_suite",
    "ModuleAdapterSuite": "module_adapter_suite",
    "ModuleRunner": "module_runner",
    "PluginSuite": "plugin_suite",
    "Suite": "suite",
    "drive": "fake_run",
    "overrides": "suite",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
