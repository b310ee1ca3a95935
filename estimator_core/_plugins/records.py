"""What a plugin declares: small frozen records that name things without importing them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from estimator_core.errors import ArgumentError

NAME = re.compile(r"[a-z][a-z0-9_]*")
COMMAND = re.compile(r"[a-z][a-z0-9-]*")
OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
MODULE = re.compile(rf"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*|{OBJECT.pattern}")


def require(value: object, pattern: re.Pattern[str], what: str, shape: str) -> None:
    """Refuses what does not have a form.

    Raises:
        ArgumentError: says what it is and what it must look like.
    """
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ArgumentError(f"{what} is {value!r}; it must look like {shape}")


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
    _kind("head", "heads", ".heads:Head", "Head", "a class or function that returns a Head for keyword arguments"),
    _kind("hook", "hooks", ".hooks:Hook", "Hook", "a class or function whose call returns a Hook"),
    _kind("exporter", "exporters", ".export:Exporter", "Exporter", "a class or function that returns an Exporter"),
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


_OPTION_TYPES = (str, int, float, bool)


@dataclass(frozen=True, kw_only=True)
class Component:
    """Declares something that users look up by name. `target` is imported on first use.

    Args:
        kind: one of `KINDS`, or one that a plugin defines (`estimator_kinds`).
        name: lower-case words joined by underscores, unique within its kind.
        target: `"package.module:attribute"`; a call of it returns the component (see `Plugins.kinds()[kind].target`).
        summary: one line for `estimator plugins`.
        reads: only for kind "initial_values": patterns of file names that mark a checkpoint of another framework,
            which the target reads (`estimator_core.model.ReadsCheckpoints`).
        needs: what its call needs that only a program has, such as "an input_fn". Without, it can be made from a name
            and arguments as text, and the command line offers it.
        deprecated: what to use instead, and when the component is removed. Who looks it up is warned.

    Raises:
        ArgumentError: a field does not have its form.

    Example:
        >>> Component(kind="head", name="quantile", target="acme.heads:QuantileHead", summary="Pinball loss.").name
        'quantile'
    """

    kind: str
    name: str
    target: str
    summary: str = ""
    reads: tuple[str, ...] = ()
    needs: str = ""
    deprecated: str = ""

    def __post_init__(self) -> None:
        require(self.kind, NAME, f"the kind of component {self.name!r}", "'my_kind'")
        require(self.name, NAME, f"the name of a component of kind {self.kind!r}", "'my_name'")
        require(self.target, OBJECT, f"target of {self.kind} {self.name!r}", "'package.module:attribute'")


@dataclass(frozen=True, kw_only=True)
class Command:
    """Declares a sub-command of `estimator`.

    Args:
        name: lower-case words joined by hyphens.
        target: a module with `configure(parser)` and `run(args) -> int`, imported only when the command runs; or
            `"package.module:attribute"`, a call of which returns an object that has both.
        summary: one line for `estimator --help`.

    Raises:
        ArgumentError: a field does not have its form.

    Example:
        >>> Command(name="acme-login", target="acme.cli", summary="Log in to the tracker.").target
        'acme.cli'
    """

    name: str
    target: str
    summary: str

    def __post_init__(self) -> None:
        require(self.name, COMMAND, "the name of a command", "'my-command'")
        require(self.target, MODULE, f"target of command {self.name!r}", "'package.module'")


@dataclass(frozen=True, kw_only=True)
class Option:
    """Declares a setting of a plugin. Its values are passed to the plugin's run-level hooks as `options[name]`.

    It is set with `Plugins(options={"acme-tracker": {"url": value}})`, with `estimator --plugin-option
    acme-tracker.url=value`, or with the environment variable `ESTIMATOR_OPTION_ACME_TRACKER_URL`, which overrides the
    code. The policy file of the project may set it too; all others override that. `acme-tracker` is the name of the
    distribution.

    Args:
        name: lower-case words joined by underscores.
        type: str, int, float or bool.
        default: the value if nothing is set.
        help: one line.

    Raises:
        ArgumentError: a field does not have its form.

    Example:
        >>> Option(name="url", type=str, default="", help="Address of the tracker.").default
        ''
    """

    name: str
    type: type[str] | type[int] | type[float] | type[bool]
    default: str | int | float | bool | None
    help: str

    def __post_init__(self) -> None:
        require(self.name, NAME, "the name of an option", "'my_option'")
        if self.type not in _OPTION_TYPES:
            raise ArgumentError(f"option {self.name!r}: type is {self.type!r}; it must be str, int, float or bool")
        if not isinstance(self.default, self.type | None):
            raise ArgumentError(f"option {self.name!r}: default {self.default!r} is not of type {self.type.__name__}")


@dataclass(frozen=True, kw_only=True)
class PluginRecord:
    """What is known of one installed plugin, whether it works or not.

    Attributes:
        name: the name of the entry point.
        distribution: name of the installed package; None for a module given to `Plugins(extra=...)`.
        version: the version of the distribution; None without one.
        module: what the entry point names; empty for a built-in or an object given in code.
        status: "built-in", "loaded", "blocked" (by a list or switch; never imported) or "failed".
        api: the contract version that the plugin states; None if it is unknown.
        components, commands, options: what it declares.
        kinds, specs: kinds of components and names of hook specs that it defines for other plugins.
        hooks: names of the hook specs it implements.
        capabilities: what it does to runs that did not request it.
        seconds: the time for importing and registering it.
        error: why it is blocked or failed; empty otherwise.
        traceback: the full traceback of `error`; empty without one.
        notes: faults that do not stop it: output at import, heavy imports, name collisions.
    """

    name: str
    distribution: str | None
    version: str | None
    status: str
    module: str = ""
    api: tuple[int, int] | None = None
    components: tuple[Component, ...] = ()
    commands: tuple[Command, ...] = ()
    options: tuple[Option, ...] = ()
    kinds: tuple[Kind, ...] = ()
    specs: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str = ""
    traceback: str = ""
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Unique among plugins: two distributions may use one entry-point name."""
        return f"{self.distribution or ''}:{self.name}"

    @property
    def builtin(self) -> bool:
        """Whether it is the core's own."""
        return self.status == "built-in"

    @property
    def usable(self) -> bool:
        """Whether its components can be looked up."""
        return self.status in ("built-in", "loaded")

    @property
    def owner(self) -> str:
        """The part before the colon of a qualified name: the distribution, or the name if there is none."""
        return self.distribution or self.name

    @property
    def label(self) -> str:
        """Its name in messages, e.g. `estimator-heads 0.1.0`."""
        if self.distribution is None:
            return f"{self.name} (given in code)"
        return f"{self.distribution} {self.version}" if self.version else self.distribution
