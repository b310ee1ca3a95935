"""The kinds of components the core knows, and the contract of each. Plugins may define further ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from estimator_core._plugins.forms import NAME, OBJECT, require


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of component: a row of `KINDS`, or one that a plugin defines (`estimator_kinds`).

    Args:
        name: what `Component(kind=...)` and `Plugins.get(kind, ...)` say: lower-case words joined by underscores.
        title: the plural used in lists.
        contract: `module:name` of the contract a component of this kind keeps.
        target: what the target of a component of this kind is; calling it gives the component.
        suite: the class that proves the contract: its name in `estimator_core.testing`, or `module:name`.
        scaffold: of a plugin's kind, the folder of templates for `estimator new-plugin --kind`, `package:folder`;
            empty where there is none.

    Raises:
        ArgumentError: a field does not have its form.

    Example:
        >>> kind = Kind(
        ...     name="sampler",
        ...     title="samplers",
        ...     contract="acme.samplers:Sampler",
        ...     target="a class whose call gives a Sampler",
        ...     suite="acme.testing:SamplerSuite",
        ... )
        >>> kind.name
        'sampler'
    """

    name: str
    title: str
    contract: str
    target: str
    suite: str
    scaffold: str = ""

    def __post_init__(self) -> None:
        require(self.name, NAME, "the name of a kind", "'my_kind'")
        require(self.contract, OBJECT, f"contract of kind {self.name!r}", "'package.module:attribute'")
        if ":" in self.suite:
            require(self.suite, OBJECT, f"suite of kind {self.name!r}", "'package.module:attribute'")
        if self.scaffold:
            require(self.scaffold, OBJECT, f"scaffold of kind {self.name!r}", "'package:folder'")


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
    Kind(
        name="export_check",
        title="export checks",
        contract="estimator_core.export:ExportCheck",
        target="a class or function whose call without arguments gives an ExportCheck",
        suite="ExportCheckSuite",
    ),
    Kind(
        name="checkpoint_policy",
        title="checkpoint policies",
        contract="estimator_core.hooks:CheckpointPolicy",
        target="a class or function whose call gives a CheckpointPolicy",
        suite="CheckpointPolicySuite",
    ),
    Kind(
        name="coordinator",
        title="coordinators",
        contract="estimator_core.coordinator:Coordinator",
        target="a function whose call with Processes, or None, and the options of its plugin gives a Coordinator",
        suite="CoordinatorSuite",
    ),
    Kind(
        name="storage",
        title="storages",
        contract="estimator_core.storage:Storage",
        target="a class or function whose call with a URL and `options=` gives a Storage; the name is the scheme",
        suite="StorageSuite",
    ),
)

#: The kinds of components that the core defines, by name.
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _TABLE})
