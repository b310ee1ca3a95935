"""The settings that decide which plugins may load, from arguments, the environment or a policy file."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimator_core._moved import POLICY_READER, import_moved
from estimator_core.errors import ArgumentError, PluginError

FILE = "estimator.toml"
NAMED = "ESTIMATOR_POLICY"
#: Files that mark the folder of a project. Policy files above it are ignored.
_ROOTS = (".git", "pyproject.toml")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The contents of a policy. Later settings cannot allow what it forbids.

    Attributes:
        files: the files that it was read from; empty without files.
        allow: names of distributions that may load. None: all.
        block: names of distributions that may not load.
        options: the options of plugins, by distribution and name. Those of code, environment and command line override
            them.
        default_hooks: see RunConfig. Packages that it omits add no hooks to a run.
        overrides: the distribution that provides a component, by `kind.name`, or `distribution:name` for another name.
        strict: whether a broken plugin is an error. False: other settings decide.
        locks: lock files, which all apply.

    Example:
        >>> Policy(allow=("acme-heads",)).allow
        ('acme-heads',)
    """

    files: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    default_hooks: bool | tuple[str, ...] = True
    overrides: Mapping[str, str] = field(default_factory=dict[str, str])
    strict: bool = False
    locks: tuple[str, ...] = ()


NO_POLICY = Policy()


def policy_files(environ: Mapping[str, str], folder: Path) -> list[str]:
    """Returns the policy files that apply: that of the folder's project, and that of the environment."""
    places = (folder, *folder.parents)
    roots = (depth for depth, place in enumerate(places) if any((place / mark).exists() for mark in _ROOTS))
    project = places[: next(roots, 0) + 1]  # outside a project, a file in a folder above belongs to other code
    found = [str(place / FILE) for place in project if (place / FILE).is_file()]
    return found[:1] + [name for name in [environ.get(NAMED, "")] if name]


def policy_of(files: list[str]) -> Policy:
    """Returns the combined policy of some files. Without files, nothing is imported.

    Raises:
        PluginError: the package that reads policies is not installed. An unread policy would not forbid anything.
    """
    if not files:
        return NO_POLICY
    module, distribution = POLICY_READER
    try:
        reader = import_moved(module, distribution, f"the reader of {', '.join(files)}")
    except ModuleNotFoundError as error:
        raise PluginError(f"this project has a policy: {error}") from error
    return reader.read_policy(files)


ONLY = "ESTIMATOR_PLUGINS"
BLOCK = "ESTIMATOR_PLUGINS_BLOCK"
NO_AUTOLOAD = "ESTIMATOR_DISABLE_PLUGIN_AUTOLOAD"
STRICT = "ESTIMATOR_STRICT_PLUGINS"
TRACE = "ESTIMATOR_TRACE_PLUGINS"
LOCK = "ESTIMATOR_PLUGINS_LOCK"
#: The default file of `estimator plugins lock` and `--locked`.
LOCK_FILE = "estimator-plugins.lock"
#: The variables that options of the command line have set.
SWITCHED = "ESTIMATOR_COMMAND_LINE"


@dataclass(frozen=True, kw_only=True)
class PluginSettings:
    """Decides which plugins may load. Names are those of distributions, because an entry point can have any name.

    Attributes:
        only: the only plugins that may load. None: all installed plugins.
        block: plugins that may never load, even if `only` names them.
        strict: whether a broken plugin or a failing run-level hook raises an error.
        trace: whether every hook call is logged with its duration.
        locks: files that list the only plugins of a run. All of them apply.
        policy: the policy of the project. Nothing can allow what it forbids.
    """

    only: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    strict: bool = False
    trace: bool = False
    locks: tuple[str, ...] = ()
    policy: Policy = NO_POLICY

    def refusal(self, identity: str) -> str | None:
        """Returns the reason why a plugin may not load; None if it may. `identity` is the name of its distribution.

        Example:
            >>> PluginSettings(block=("Acme_Tracker",)).refusal("acme-tracker")
            'blocked by name (block list: Acme_Tracker)'
            >>> PluginSettings(only=()).refusal("acme-tracker")
            'the allow list is empty, as by --no-plugins'
        """
        policy = self.policy
        if matches(policy.block, identity) or (policy.allow is not None and not matches(policy.allow, identity)):
            return f"forbidden by the policy ({', '.join(policy.files)})"
        if matches(self.block, identity):
            return f"blocked by name (block list: {', '.join(self.block)})"
        if self.only is not None and not matches(self.only, identity):
            empty = "the allow list is empty, as by --no-plugins"
            return f"not on the allow list ({', '.join(self.only)})" if self.only else empty
        return None

    def unmatched(self, installed: Iterable[str]) -> list[str]:
        """Returns the names on the lists that do not belong to an installed distribution with a plugin."""
        known = {normalise(name) for name in installed}
        policy, hooks = self.policy, self.policy.default_hooks
        said = (self.only, self.block, policy.allow, policy.block, () if isinstance(hooks, bool) else hooks)
        names = dict.fromkeys(name for each in said for name in each or ())
        return [name for name in names if normalise(name) not in known]


def resolve_settings(
    environ: Mapping[str, str],
    *,
    only: Iterable[str] | None = None,
    block: Iterable[str] | None = None,
    autoload: bool | None = None,
    strict: bool | None = None,
    lock: str | None = None,
    policy: Policy = NO_POLICY,
) -> PluginSettings:
    """Combines the policy, the arguments and the environment, which overrides arguments. Block lists and locks add up.

    Example:
        >>> resolve_settings({"ESTIMATOR_PLUGINS": "acme-heads, acme-hooks ,"}).only
        ('acme-heads', 'acme-hooks')
        >>> resolve_settings({"ESTIMATOR_PLUGINS": ""}).only  # an empty list allows nothing
        ()
        >>> resolve_settings({}, autoload=False).only
        ()
    """
    given = None if only is None else _given("only", only)
    allowed = _names(environ[ONLY]) if ONLY in environ else given
    if NO_AUTOLOAD in environ:
        autoload = not _flag(environ, NO_AUTOLOAD)
    return PluginSettings(
        only=() if allowed is None and autoload is False else allowed,
        block=(*_given("block", block or ()), *_names(environ.get(BLOCK, ""))),
        strict=policy.strict or (_flag(environ, STRICT) if STRICT in environ else bool(strict)),
        trace=_flag(environ, TRACE),
        locks=tuple(filter(None, [*policy.locks, lock, environ.get(LOCK)])),
        policy=policy,
    )


def option_variable(identity: str, option: str) -> str:
    """Returns the environment variable that sets an option of a distribution's plugins.

    Example:
        >>> option_variable("acme-tracker", "url")
        'ESTIMATOR_OPTION_ACME_TRACKER_URL'
    """
    return f"ESTIMATOR_OPTION_{normalise(identity)}_{option}".upper().replace("-", "_")


@functools.cache  # lists of many names are compared with many packages
def normalise(name: str) -> str:
    """Returns the form in which names are compared, as package installers do."""
    return re.sub(r"[-_.]+", "-", name).lower()


def matches(names: Iterable[str], identity: str) -> bool:
    """Returns whether a list names a distribution."""
    return normalise(identity) in map(normalise, names)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _given(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ArgumentError(f"{argument}={names!r} is one string; give a list of names: {argument}=[{names!r}]")
    return tuple(names)


def _flag(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower()
    if value in ("", "0", "false", "no", "off"):
        return False
    if value in ("1", "true", "yes", "on"):
        return True
    raise ArgumentError(f"environment variable {name}={value!r}; use 1 or 0")
