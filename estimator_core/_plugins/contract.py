"""Checks that a plugin module keeps the contract, in its implementations and in its definitions for other plugins."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from estimator_core import hookspecs
from estimator_core._plugins.records import KINDS, Kind, declared
from estimator_core._wrong_arguments import suggestion
from estimator_core.errors import PluginError

#: The names of all hook specifications of the core.
HOOK_NAMES = tuple(name for name in dir(hookspecs) if name.startswith(hookspecs.PREFIX))


def checked_api(plugin: object) -> tuple[int, int]:
    """Returns the contract version that a plugin states.

    Raises:
        PluginError: the plugin states no version, or one that this core does not support.
    """
    own_major, own_minor = hookspecs.PLUGIN_API
    stated = getattr(plugin, "ESTIMATOR_PLUGIN_API", None)
    pair = f"ESTIMATOR_PLUGIN_API = {hookspecs.PLUGIN_API}"
    if stated is None:
        raise PluginError(f"it states no contract version; add `{pair}` to its plugin module")
    match stated:
        case (int(major), int(minor)) if min(major, minor) >= 0 and not isinstance(major, bool):
            pass
        case _:
            raise PluginError(f"ESTIMATOR_PLUGIN_API is {stated!r}; it must be a pair of integers from 0: `{pair}`")
    if major != own_major or minor > own_minor:
        cure = "upgrade estimator-core" if (major, minor) > hookspecs.PLUGIN_API else "upgrade the plugin"
        raise PluginError(
            f"it was written for plugin contract {major}.{minor}; this core offers {own_major}.{own_minor}: "
            f"{cure}, or uninstall {'the plugin' if cure.endswith('core') else 'it'}"
        )
    return major, minor


def checked_hook_names(plugin: object, known: Sequence[str]) -> tuple[str, ...]:
    """Returns the hook specifications that a plugin implements, sorted.

    Args:
        plugin: the module or object of the plugin.
        known: the names of all specifications of the core and of plugins.

    Raises:
        PluginError: a function has the prefix or the mark of a hook, but no hook has its name, or the contract does not
            allow its mark. Or an object with the name of a hook is not a function.
    """
    names: list[str] = []
    for name in dir(plugin):
        attribute = inspect.getattr_static(plugin, name)
        marks = cast("dict[str, Any]", getattr(attribute, f"{hookspecs.PROJECT}_impl", None) or {})
        if marks.get("wrapper") or marks.get("hookwrapper"):
            raise PluginError(f"{name} is a hook wrapper; this contract has none")
        if marks.get("specname"):
            raise PluginError(f"{name} uses specname=; give the function the name of its specification")
        if not marks and not is_implementation(plugin, name):
            if name in known and not _may_have_the_name(attribute):
                raise PluginError(f"{name} is {attribute!r:.60}; it must be a function")
            continue
        if name in known:
            names.append(name)
        elif not marks.get("optionalhook"):
            hint = suggestion(name, known, f"specifications are {', '.join(known)}")
            raise PluginError(f"there is no hook specification {name}; {hint}")
    return tuple(names)


def _may_have_the_name(attribute: object) -> bool:
    """Returns whether an object is a specification, which a plugin may define or import, or a module."""
    return hasattr(attribute, f"{hookspecs.PROJECT}_spec") or inspect.ismodule(attribute)


def check_arguments(plugin: object, name: str, known: Sequence[str]) -> None:
    """Refuses an implementation with an argument that its specification does not have.

    Args:
        plugin: the module or object of the plugin.
        name: the name of the specification.
        known: the arguments of the specification.

    Raises:
        PluginError: the specification has no such argument.
    """
    taken = inspect.signature(getattr(plugin, name)).parameters.values()
    for one in taken:
        if one.name not in known and one.default is one.empty and one.kind < one.VAR_POSITIONAL:
            there = ", ".join(known) or "none"
            raise PluginError(f"{name} takes the argument {one.name!r}, which the specification lacks; it has: {there}")


def is_implementation(plugin: object, name: str) -> bool:
    """Returns whether an attribute counts as a hook implementation by its name alone: a function with the prefix."""
    attribute = inspect.getattr_static(plugin, name)
    if isinstance(attribute, staticmethod | classmethod):
        attribute = cast("Any", attribute).__func__
    defines = hasattr(attribute, f"{hookspecs.PROJECT}_spec")  # a specification next to the code that calls it
    return name.startswith(hookspecs.PREFIX) and inspect.isroutine(attribute) and not defines


_CORE = "estimator-core"


@dataclass(frozen=True, kw_only=True)
class Definitions:
    """The definitions of one plugin.

    Attributes:
        kinds: the kinds of components.
        specs: the names of the hook specifications, sorted.
        holder: the module or class of the specifications. None without specifications.
    """

    kinds: tuple[Kind, ...] = ()
    specs: tuple[str, ...] = ()
    holder: Any = None


def definitions_of(plugin: object) -> Definitions:
    """Returns the definitions of a plugin module.

    Raises:
        PluginError: the module returned a value of the wrong type, a name twice, or a specification that the contract
            does not allow.
    """
    defines = [name for name in dir(plugin) if is_implementation(plugin, name)]
    kinds = declared(plugin, "estimator_kinds", Kind) if "estimator_kinds" in defines else ()
    if "estimator_hookspecs" not in defines:
        return Definitions(kinds=kinds)
    holder = cast("Any", plugin).estimator_hookspecs()
    return Definitions(kinds=kinds, specs=_specs(holder), holder=holder)


def colliding(defined: Mapping[str, Definitions], labels: Mapping[str, str]) -> dict[str, PluginError]:
    """Returns an error for each plugin that defines a kind or specification that another plugin defines too, in any
    order.

    Args:
        defined: the definitions, by key of the plugin.
        labels: the names of the plugins in messages.
    """
    owners: dict[tuple[str, str], list[str]] = {}
    for key, own in defined.items():
        for what, names in (("kind", [kind.name for kind in own.kinds]), ("hook specification", own.specs)):
            for name in names:
                owners.setdefault((what, name), []).append(key)
    errors: dict[str, PluginError] = {}
    for (what, name), keys in owners.items():
        core = name in (KINDS if what == "kind" else HOOK_NAMES)
        for key in keys if core or len(keys) > 1 else ():
            others = [*([_CORE] if core else []), *(labels[other] for other in keys if other != key)]
            text = f"it defines the {what} {name!r}, and so does {', '.join(others)}"
            errors.setdefault(key, PluginError(f"{text}: one of them must choose another name, or be blocked"))
    return errors


def _specs(holder: object) -> tuple[str, ...]:
    if holder is None:
        raise PluginError(
            "estimator_hookspecs() returned None; it must return a module or class of hook specifications"
        )
    marks = {name: _mark(holder, name) for name in dir(holder)}
    names = sorted(name for name, mark in marks.items() if mark is not None)
    if not names:
        raise PluginError(f"estimator_hookspecs() returned {holder!r}, in which no function is marked with `hookspec`")
    for name in names:
        mark = marks[name]
        if mark and (mark.get("firstresult") or mark.get("historic")):
            raise PluginError(f"hook specification {name} is marked firstresult or historic; this contract has neither")
    return tuple(names)


def _mark(holder: object, name: str) -> dict[str, Any] | None:
    return getattr(inspect.getattr_static(holder, name), f"{hookspecs.PROJECT}_spec", None)
