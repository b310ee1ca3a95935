"""What a plugin declares: small frozen records that name things without importing them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from estimator_core._plugins.kinds import KINDS
from estimator_core.errors import ArgumentError

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COMMAND = re.compile(r"[a-z][a-z0-9-]*")
_OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_OPTION_TYPES = (str, int, float, bool)


def _require(value: object, pattern: re.Pattern[str], what: str, shape: str) -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ArgumentError(f"{what} is {value!r}; it must look like {shape}")


@dataclass(frozen=True, kw_only=True)
class Component:
    """Declares something users look up by name; `target` is imported on first use.

    Args:
        kind: one of `KINDS`.
        name: lower-case words joined by underscores, unique within its kind.
        target: `"package.module:attribute"`; calling it gives the component (see `KINDS[kind].target`).
        summary: one line for `estimator plugins`.

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

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ArgumentError(f"Component {self.name!r}: kind is {self.kind!r}; it must be one of {', '.join(KINDS)}")
        _require(self.name, _NAME, f"the name of a component of kind {self.kind!r}", "'my_name'")
        _require(self.target, _OBJECT, f"target of {self.kind} {self.name!r}", "'package.module:attribute'")


@dataclass(frozen=True, kw_only=True)
class Command:
    """Declares a sub-command of `estimator`.

    Args:
        name: lower-case words joined by hyphens.
        target: a module with `configure(parser)` and `run(args) -> int`, imported only when the command runs.
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
        _require(self.name, _COMMAND, "the name of a command", "'my-command'")
        _require(self.target, _MODULE, f"target of command {self.name!r}", "'package.module'")


@dataclass(frozen=True, kw_only=True)
class Option:
    """Declares a setting of a plugin; its values are handed to the plugin's run-level hooks as `options[name]`.

    Set by `Plugins(options={"plugin": {"name": value}})`, `estimator --plugin-option plugin.name=value`, or the
    environment variable `ESTIMATOR_OPTION_<PLUGIN>_<NAME>`; the environment counts last.

    Args:
        name: lower-case words joined by underscores.
        type: str, int, float or bool.
        default: the value where nothing is set.
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
        _require(self.name, _NAME, "the name of an option", "'my_option'")
        if self.type not in _OPTION_TYPES:
            raise ArgumentError(f"option {self.name!r}: type is {self.type!r}; it must be str, int, float or bool")
        if not isinstance(self.default, self.type | None):
            raise ArgumentError(f"option {self.name!r}: default {self.default!r} is not of type {self.type.__name__}")


@dataclass(frozen=True, kw_only=True)
class PluginRecord:
    """What is known of one installed plugin, whether it works or not.

    Attributes:
        name: of the entry point.
        distribution: name of the installed package; None for a module handed to `Plugins(extra=...)`.
        version: of the distribution; None where there is none.
        module: what the entry point names; empty for a built-in or an object handed over in code.
        status: "built-in", "loaded", "blocked" (by a list or switch; never imported) or "failed".
        api: the contract version the plugin states; None where it is unknown.
        components, commands, options: what it declares.
        hooks: names of the hook specs it implements.
        seconds: time taken by importing and registering it.
        error: why it is blocked or failed; empty otherwise.
        traceback: the full traceback behind `error`; empty where there is none.
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
    hooks: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str = ""
    traceback: str = ""
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Unique among plugins: two distributions may use one entry-point name."""
        return f"{self.owner}:{self.name}"

    @property
    def usable(self) -> bool:
        """Whether its components can be looked up."""
        return self.status in ("built-in", "loaded")

    @property
    def owner(self) -> str:
        """What stands before the colon of a qualified name: the distribution, or the name where there is none."""
        return self.distribution or self.name

    @property
    def label(self) -> str:
        """How messages call it, e.g. `estimator-heads 0.1.0`."""
        if self.distribution is None:
            return f"{self.name} (given in code)"
        return f"{self.distribution} {self.version}" if self.version else self.distribution
