"""What plugins define for other plugins: kinds of components, and hook specifications."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from estimator_core import hookspecs
from estimator_core._plugins.contract import HOOK_NAMES, is_implementation
from estimator_core._plugins.kinds import KINDS, Kind
from estimator_core.errors import PluginError

_CORE = "estimator-core"


@dataclass(frozen=True, kw_only=True)
class Definitions:
    """What one plugin defines.

    Attributes:
        kinds: kinds of components.
        specs: names of hook specifications, sorted.
        holder: the module or class that has the specifications; None without any.
    """

    kinds: tuple[Kind, ...] = ()
    specs: tuple[str, ...] = ()
    holder: Any = None


def definitions_of(plugin: object) -> Definitions:
    """What a plugin module defines.

    Raises:
        PluginError: it returned something of the wrong type, one name twice, or a specification that the contract does
            not allow.
    """
    holder = _given(plugin, "estimator_hookspecs")
    return Definitions(kinds=_kinds(plugin), specs=() if holder is None else _specs(holder), holder=holder)


def colliding(defined: Mapping[str, Definitions], labels: Mapping[str, str]) -> dict[str, PluginError]:
    """The plugins that define a kind or specification with the name of another: all of them, in any order.

    Args:
        defined: the definitions by key of the plugin.
        labels: the name of each plugin in messages.
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


def _kinds(plugin: object) -> tuple[Kind, ...]:
    given = _given(plugin, "estimator_kinds")
    kinds: tuple[Any, ...] = () if given is None else tuple(given)
    for kind in kinds:
        if not isinstance(kind, Kind):
            raise PluginError(f"estimator_kinds() returned {kind!r}; it must return Kind records")
    _refuse_twice("estimator_kinds()", [kind.name for kind in kinds])
    return kinds


def _given(plugin: object, name: str) -> Any:
    if name not in dir(plugin) or not is_implementation(plugin, name):
        return None
    given = getattr(plugin, name)()
    if given is None:
        what = "a list of Kind records" if name == "estimator_kinds" else "a module or class of hook specifications"
        raise PluginError(f"{name}() returned None; it must return {what}")
    return given


def _specs(holder: object) -> tuple[str, ...]:
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


def _refuse_twice(where: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise PluginError(f"{where} declares {name!r} twice")
        seen.add(name)
