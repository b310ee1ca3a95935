"""The records that a plugin declares. They are small and frozen, and name objects without importing them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from estimator_core.errors import ArgumentError, PluginError

NAME = re.compile(r"[a-z][a-z0-9_]*")
COMMAND = re.compile(r"[a-z][a-z0-9-]*")
OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
MODULE = re.compile(rf"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*|{OBJECT.pattern}")


def require(value: object, pattern: re.Pattern[str], what: str, shape: str) -> None:
    """Refuses a value that does not match a pattern.

    Raises:
        ArgumentError: the value does not match. The message shows the value and the expected form.
    """
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ArgumentError(f"{what} is {value!r}; it must look like {shape}")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of component: a row of `KINDS`, or one that a plugin defines (`estimator_kinds`).

    Args:
        name: the name in `Component(kind=...)` and `Plugins.get(kind, ...)`: lower-case words joined by underscores.
        title: the plural, for lists.
        contract: `module:name` of the contract that components of this kind implement.
        target: a description of the target of such a component. A call of the target returns the component.
        suite: the class that tests the contract: its name in `estimator_core.testing`, or `module:name`.
        scaffold: for a kind that a plugin defines, `package:folder` with the templates for `estimator new-plugin
            --kind`. Empty without templates.

    Raises:
        ArgumentError: a field has an invalid form.

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


def _kind(name: str, title: str, contract: str, target: str, *, suite: str = "") -> Kind:
    """Returns a kind of the core. Its suite has the name of the contract, unless another one is given."""
    suite = suite or f"{contract.partition(':')[2]}Suite"
    return Kind(name=name, title=title, contract=f"estimator_core{contract}", target=target, suite=suite)


_CALLED = "a class or function whose call returns"
_CALLED_WITHOUT = "a class or function whose call without arguments returns"
_PROCESSES = "a function whose call with Processes, or None, and the options of its plugin returns a Coordinator"
_URL = "a class or function whose call with a URL and `options=` returns a Storage; the name is the scheme"
_TABLE = (
    _kind("head", "heads", ".heads:Head", "a class or function that returns a Head for keyword arguments"),
    _kind("hook", "hooks", ".hooks:Hook", f"{_CALLED} a Hook"),
    _kind("exporter", "exporters", ".export:Exporter", "a class or function that returns an Exporter"),
    _kind("format", "export formats", ".export:ExportFormat", f"{_CALLED_WITHOUT} an ExportFormat"),
    _kind("backend", "backends", ".backends:Backend", f"{_CALLED_WITHOUT} a Backend"),
    _kind("model", "models", ":Estimator", f"{_CALLED} an Estimator", suite="ModelSuite"),
    _kind("adapter", "module adapters", ".model:ModuleAdapter", f"{_CALLED_WITHOUT} a ModuleAdapter"),
    _kind("input", "inputs", ".inputs:InputFn", "a function whose call returns an input_fn", suite="InputSuite"),
    _kind("transform", "host transforms", ".inputs:HostTransform", "a class whose call returns a HostTransform"),
    _kind("initial_values", "initial values", ".model:InitialValues", f"{_CALLED} InitialValues"),
    _kind("export_check", "export checks", ".export:ExportCheck", f"{_CALLED_WITHOUT} an ExportCheck"),
    _kind("checkpoint_policy", "checkpoint policies", ".hooks:CheckpointPolicy", f"{_CALLED} a CheckpointPolicy"),
    _kind("coordinator", "coordinators", ".coordinator:Coordinator", _PROCESSES),
    _kind("storage", "storages", ".storage:Storage", _URL),
)

#: The kinds of components that the core defines, by name.
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _TABLE})


_OPTION_TYPES = (str, int, float, bool)


@dataclass(frozen=True, kw_only=True)
class Component:
    """Declares an object that users look up by name. `target` is imported on first use.

    Args:
        kind: one of `KINDS`, or one that a plugin defines (`estimator_kinds`).
        name: lower-case words joined by underscores, unique within its kind.
        target: `"package.module:attribute"`. A call of it returns the component (see `Plugins.kinds()[kind].target`).
        summary: one line for `estimator plugins`.
        reads: only for kind "initial_values": file name patterns of the checkpoints of another framework that the
            target reads (`estimator_core.model.ReadsCheckpoints`).
        needs: an argument that only a program can supply, such as "an input_fn". If empty, the component can be created
            from a name and text arguments, and the command line offers it.
        deprecated: the replacement, and when the component will be removed. Looking up the component shows a warning.

    Raises:
        ArgumentError: a field has an invalid form.

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
        target: a module with `configure(parser)` and `run(args) -> int`, imported only when the command runs. Or
            `"package.module:attribute"`, whose call returns an object with both.
        summary: one line for `estimator --help`.

    Raises:
        ArgumentError: a field has an invalid form.

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
    """Declares a setting of a plugin. Run-level hooks of the plugin receive its value as `options[name]`.

    Set it with `Plugins(options={"acme-tracker": {"url": value}})`, with `estimator --plugin-option
    acme-tracker.url=value`, or with the environment variable `ESTIMATOR_OPTION_ACME_TRACKER_URL`, which overrides the
    code. The policy file of the project may also set it, with the lowest priority. `acme-tracker` is the name of the
    distribution.

    Args:
        name: lower-case words joined by underscores.
        type: str, int, float or bool.
        default: the value if none is set.
        help: one line for users.

    Raises:
        ArgumentError: a field has an invalid form.

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
    """Information about one installed plugin, whether it works or not.

    Attributes:
        name: the name of the entry point.
        distribution: the name of the installed package; None for a module passed to `Plugins(extra=...)`.
        version: the version of the distribution; None without a distribution.
        module: the target of the entry point; empty for a built-in or an object passed in code.
        status: "built-in", "loaded", "blocked" (by a list or switch; never imported) or "failed".
        api: the contract version that the plugin states; None if unknown.
        components, commands, options: the declared components, commands and options.
        kinds, specs: the kinds of components and the names of hook specs that it defines for other plugins.
        hooks: the names of the hook specs that it implements.
        capabilities: how it affects runs that did not request it.
        seconds: the seconds to import and register it.
        error: the reason why it is blocked or failed; empty otherwise.
        traceback: the traceback of `error`; empty without one.
        notes: faults that do not prevent its use: output at import, slow imports, name collisions.
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
        """A unique key among plugins, because two distributions may use one entry-point name."""
        return f"{self.distribution or ''}:{self.name}"

    @property
    def builtin(self) -> bool:
        """Whether the plugin belongs to the core."""
        return self.status == "built-in"

    @property
    def usable(self) -> bool:
        """Whether the components of the plugin can be looked up."""
        return self.status in ("built-in", "loaded")

    @property
    def owner(self) -> str:
        """The part before the colon of a qualified name: the distribution, or the plugin name without one."""
        return self.distribution or self.name

    @property
    def label(self) -> str:
        """The name of the plugin in messages, such as `estimator-heads 0.1.0`."""
        if self.distribution is None:
            return f"{self.name} (given in code)"
        return f"{self.distribution} {self.version}" if self.version else self.distribution


def declared(plugin: object, name: str, type_: type) -> tuple[Any, ...]:
    """Returns the records or names that a function of a plugin declares, all of one type.

    Raises:
        PluginError: the function raised an error, returned something else, or declares a name twice.
    """
    what = "names" if type_ is str else f"{type_.__name__} records"
    try:
        given = getattr(plugin, name)()
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise PluginError(f"{name}() returned {given!r}; it must return a list of {what}")
        records: tuple[Any, ...] = tuple(cast("Iterable[Any]", given))
    except (PluginError, ArgumentError):  # they say what is wrong
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}, line {frame.lineno}"
        raise PluginError(f"{name}() raised {type(error).__name__}: {error} ({where})") from error
    seen: set[tuple[str, str]] = set()
    for item in records:
        if not isinstance(item, type_):
            raise PluginError(f"{name}() returned {item!r}; it must return {what}")
        key = (getattr(item, "kind", ""), getattr(item, "name", item if isinstance(item, str) else ""))
        if key in seen:
            raise PluginError(f"{name}() declares {' '.join(filter(None, key))!r} twice")
        seen.add(key)
    return records
