"""Checks that a plugin module keeps the contract before any of its functions is called."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, cast

from estimator_core import hookspecs
from estimator_core.errors import PluginError

#: The names of all hook specifications of the core.
HOOK_NAMES = tuple(name for name in dir(hookspecs) if name.startswith(hookspecs.PREFIX))


def checked_api(plugin: object) -> tuple[int, int]:
    """The contract version that a plugin states.

    Raises:
        PluginError: it states none, or one that this core does not offer.
    """
    own_major, own_minor = hookspecs.PLUGIN_API
    stated = getattr(plugin, "ESTIMATOR_PLUGIN_API", None)
    pair = f"ESTIMATOR_PLUGIN_API = {hookspecs.PLUGIN_API}"
    if stated is None:
        raise PluginError(f"it states no contract version; add `{pair}` to its plugin module")
    match stated:
        case (int(major), int(minor)):
            pass
        case _:
            raise PluginError(f"ESTIMATOR_PLUGIN_API is {stated!r}; it must be a pair of integers: `{pair}`")
    if major != own_major or minor > own_minor:
        cure = "upgrade estimator-core" if (major, minor) > hookspecs.PLUGIN_API else "upgrade the plugin"
        raise PluginError(
            f"it was written for plugin contract {major}.{minor}; this core offers {own_major}.{own_minor}: "
            f"{cure}, or uninstall {'the plugin' if cure.endswith('core') else 'it'}"
        )
    return major, minor


def checked_hook_names(plugin: object, known: Sequence[str]) -> tuple[str, ...]:
    """The hook specifications that a plugin implements, sorted.

    Args:
        plugin: its module or object.
        known: names of all specifications, the core's and those that plugins define.

    Raises:
        PluginError: a function has the prefix or the mark of a hook, but there is no hook with its name, or its mark is
            not in the contract.
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
            continue
        if name in known:
            names.append(name)
        elif not marks.get("optionalhook"):
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise PluginError(f"there is no hook specification {name}; {hint}")
    return tuple(names)


def check_arguments(plugin: object, name: str, known: Sequence[str]) -> None:
    """Refuses an implementation that takes an argument which its specification does not have.

    Args:
        plugin: its module or object.
        name: the specification.
        known: the arguments of the specification.

    Raises:
        PluginError: there is no such argument.
    """
    taken = inspect.signature(getattr(plugin, name)).parameters.values()
    for one in taken:
        if one.name not in known and one.default is one.empty and one.kind < one.VAR_POSITIONAL:
            there = ", ".join(known) or "none"
            raise PluginError(f"{name} takes the argument {one.name!r}, which the specification lacks; it has: {there}")


def is_implementation(plugin: object, name: str) -> bool:
    """Whether an attribute counts as a hook implementation by its name alone: a function with the prefix."""
    attribute = inspect.getattr_static(plugin, name)
    if isinstance(attribute, staticmethod | classmethod):
        attribute = cast("Any", attribute).__func__
    defines = hasattr(attribute, f"{hookspecs.PROJECT}_spec")  # a specification next to the code that calls it
    return name.startswith(hookspecs.PREFIX) and inspect.isroutine(attribute) and not defines
