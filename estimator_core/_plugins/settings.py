"""Which plugins may load: levers and a strict switch, from arguments, the environment or a policy file."""

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
#: What marks the folder of a project. No policy file is looked for above it.
_ROOTS = (".git", "pyproject.toml")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a policy says. What it forbids stays forbidden, whatever later settings say.

    Attributes:
        files: the files it was read from; empty without any.
        allow: names of distributions that may load; None: all.
        block: names of distributions that may not load.
        options: options of plugins, by distribution and name; those of the code, the environment and the command line
            override them.
        default_hooks: as in RunConfig; what it leaves out joins no run.
        overrides: the distribution that provides a component, by `kind.name`; `distribution:name` for another name.
        strict: whether a broken plugin is an error; False leaves it to other settings.
        locks: lock files; all of them apply.

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
    """The policy files that apply: that of the project of a folder, and the one that the environment names."""
    places = (folder, *folder.parents)
    roots = (depth for depth, place in enumerate(places) if any((place / mark).exists() for mark in _ROOTS))
    project = places[: next(roots, 0) + 1]  # outside a project, a file further up belongs to other code
    found = [str(place / FILE) for place in project if (place / FILE).is_file()]
    return found[:1] + [name for name in [environ.get(NAMED, "")] if name]


def policy_of(files: list[str]) -> Policy:
    """The combined policy of some files. Without files, nothing is imported.

    Raises:
        PluginError: the package that reads them is not installed. An unread policy would forbid nothing.
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
#: Where `estimator plugins lock` writes, and `--locked` looks, unless another file is named.
LOCK_FILE = "estimator-plugins.lock"
#: The variables that switches of the command line have set.
SWITCHED = "ESTIMATOR_COMMAND_LINE"


@dataclass(frozen=True, kw_only=True)
class PluginSettings:
    """Which plugins may load. Names are those of distributions: anybody may give an entry point any name.

    Attributes:
        only: None: every installed plugin; else these alone.
        block: never these, even if `only` names them.
        strict: a broken plugin or a failing run-level hook raises.
        trace: every hook call is logged with its time.
        locks: files that name the only plugins a run may have; all of them hold.
        policy: of the project; what it forbids stays forbidden.
    """

    only: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    strict: bool = False
    trace: bool = False
    locks: tuple[str, ...] = ()
    policy: Policy = NO_POLICY

    def refusal(self, identity: str) -> str | None:
        """Why a plugin may not load, None if it may; `identity` is the name of its distribution.

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
        """Names on the lists that no installed distribution with a plugin has."""
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
    """Settings from the policy, from arguments and from the environment, which is stronger than arguments. Block lists
    and locks add up.

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
    """The environment variable that sets an option of a distribution's plugins.

    Example:
        >>> option_variable("acme-tracker", "url")
        'ESTIMATOR_OPTION_ACME_TRACKER_URL'
    """
    return f"ESTIMATOR_OPTION_{normalise(identity)}_{option}".upper().replace("-", "_")


@functools.cache  # lists of many names are compared with many packages
def normalise(name: str) -> str:
    """The form in which names are compared, as package installers do."""
    return re.sub(r"[-_.]+", "-", name).lower()


def matches(names: Iterable[str], identity: str) -> bool:
    """Whether a list names a distribution."""
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
