"""The kinds of components a plugin can give, and the contract of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of component.

    Attributes:
        name: what `Component(kind=...)` and `Plugins.get(kind, ...)` say.
        title: the plural used in lists.
        contract: `module:name` of the contract a component of this kind keeps.
        target: what the target of a component of this kind is; calling it gives the component.
        suite: the class of `estimator_core.testing` that proves the contract.
    """

    name: str
    title: str
    contract: str
    target: str
    suite: str


_TABLE = (
    Kind(
        name="head",
        title="heads",
        contract="estimator_core.heads:Head",
        target="a class or function whose call with keyword arguments gives a Head",
        suite="HeadSuite",
    ),
    Kind(
        name="hook",
        title="hooks",
        contract="estimator_core.hooks:Hook",
        target="a class or function whose call gives a Hook",
        suite="HookSuite",
    ),
    Kind(
        name="exporter",
        title="exporters",
        contract="estimator_core.export:Exporter",
        target="a class or function whose call gives an Exporter",
        suite="ExporterSuite",
    ),
    Kind(
        name="format",
        title="export formats",
        contract="estimator_core.export:ExportFormat",
        target="a class or function whose call without arguments gives an ExportFormat",
        suite="ExportFormatSuite",
    ),
    Kind(
        name="backend",
        title="backends",
        contract="estimator_core.backends:Backend",
        target="a class or function whose call without arguments gives a Backend",
        suite="BackendSuite",
    ),
    Kind(
        name="model",
        title="models",
        contract="estimator_core:Estimator",
        target="a class or function whose call gives an Estimator",
        suite="ModelSuite",
    ),
    Kind(
        name="adapter",
        title="module adapters",
        contract="estimator_core.model:ModuleAdapter",
        target="a class or function whose call without arguments gives a ModuleAdapter",
        suite="ModuleAdapterSuite",
    ),
    Kind(
        name="input",
        title="inputs",
        contract="estimator_core.inputs:InputFn",
        target="a function whose call gives an input_fn",
        suite="InputSuite",
    ),
    Kind(
        name="transform",
        title="host transforms",
        contract="estimator_core.inputs:HostTransform",
        target="a class whose call gives a HostTransform",
        suite="HostTransformSuite",
    ),
    Kind(
        name="initial_values",
        title="initial values",
        contract="estimator_core.model:InitialValues",
        target="a class or function whose call gives InitialValues",
        suite="InitialValuesSuite",
    ),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _TABLE})
