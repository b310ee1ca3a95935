"""The kinds of components that the core knows, and the contract of each. Plugins may define more."""

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
        contract: `module:name` of the contract that a component of this kind keeps.
        target: what the target of a component of this kind is; a call of it returns the component.
        suite: the class that proves the contract: its name in `estimator_core.testing`, or `module:name`.
        scaffold: for a plugin's kind, the folder of templates for `estimator new-plugin --kind`, `package:folder`;
            empty without one.

    Raises:
        ArgumentError: a field does not have its form.

    Example:
        >>> kind = Kind(
        ...     name="sampler",
        ...     title="samplers",
        ...     contract="acme.samplers:Sampler",
        ...     target="a class whose call returns a Sampler",
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


def _kind(name: str, title: str, contract: str, suite: str, target: str) -> Kind:
    return Kind(name=name, title=title, contract=f"estimator_core{contract}", suite=f"{suite}Suite", target=target)


_TABLE = (
    _kind(
        "head", "heads", ".heads:Head", "Head", "a class or function whose call with keyword arguments returns a Head"
    ),
    _kind("hook", "hooks", ".hooks:Hook", "Hook", "a class or function whose call returns a Hook"),
    _kind(
        "exporter", "exporters", ".export:Exporter", "Exporter", "a class or function whose call returns an Exporter"
    ),
    _kind(
        "format",
        "export formats",
        ".export:ExportFormat",
        "ExportFormat",
        "a class or function whose call without arguments returns an ExportFormat",
    ),
    _kind(
        "backend",
        "backends",
        ".backends:Backend",
        "Backend",
        "a class or function whose call without arguments returns a Backend",
    ),
    _kind("model", "models", ":Estimator", "Model", "a class or function whose call returns an Estimator"),
    _kind(
        "adapter",
        "module adapters",
        ".model:ModuleAdapter",
        "ModuleAdapter",
        "a class or function whose call without arguments returns a ModuleAdapter",
    ),
    _kind("input", "inputs", ".inputs:InputFn", "Input", "a function whose call returns an input_fn"),
    _kind(
        "transform",
        "host transforms",
        ".inputs:HostTransform",
        "HostTransform",
        "a class whose call returns a HostTransform",
    ),
    _kind(
        "initial_values",
        "initial values",
        ".model:InitialValues",
        "InitialValues",
        "a class or function whose call returns InitialValues",
    ),
    _kind(
        "export_check",
        "export checks",
        ".export:ExportCheck",
        "ExportCheck",
        "a class or function whose call without arguments returns an ExportCheck",
    ),
    _kind(
        "checkpoint_policy",
        "checkpoint policies",
        ".hooks:CheckpointPolicy",
        "CheckpointPolicy",
        "a class or function whose call returns a CheckpointPolicy",
    ),
    _kind(
        "coordinator",
        "coordinators",
        ".coordinator:Coordinator",
        "Coordinator",
        "a function whose call with Processes, or None, and the options of its plugin returns a Coordinator",
    ),
    _kind(
        "storage",
        "storages",
        ".storage:Storage",
        "Storage",
        "a class or function whose call with a URL and `options=` returns a Storage; the name is the scheme",
    ),
)

#: The kinds of components that the core defines, by name.
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _TABLE})
