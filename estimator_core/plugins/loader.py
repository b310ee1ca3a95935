"""Loads candidates one by one, each isolated from the others, and records what happened."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import pluggy

from estimator_core import hookspecs
from estimator_core.errors import PluginError
from estimator_core.plugins.discovery import Candidate
from estimator_core.plugins.observed_import import observe
from estimator_core.plugins.records import Command, Component, Option, PluginRecord
from estimator_core.plugins.settings import PluginSettings

_DECLARATIONS: tuple[tuple[str, str, type], ...] = (
    ("estimator_components", "components", Component),
    ("estimator_commands", "commands", Command),
    ("estimator_options", "options", Option),
)


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """One plugin's implementation of one hook specification."""

    record: PluginRecord
    function: Callable[..., Any]
    argnames: tuple[str, ...]

    def __call__(self, **arguments: Any) -> Any:
        """Calls it with those of the arguments it takes."""
        return self.function(**{name: arguments[name] for name in self.argnames})


@dataclass(frozen=True, kw_only=True)
class LoadedPlugins:
    """The outcome of loading: records in order, and implementations in call order by specification."""

    records: tuple[PluginRecord, ...]
    implementations: dict[str, tuple[Implementation, ...]]


def load_plugins(candidates: Sequence[Candidate], settings: PluginSettings) -> LoadedPlugins:
    """Imports, checks and registers every candidate the settings allow.

    Raises:
        PluginError: a plugin failed and the settings are strict.
    """
    manager = _Manager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    records: dict[str, PluginRecord] = {}
    imported: dict[str, Any] = {}
    for candidate in candidates:
        records[candidate.key], plugin = _import(candidate, settings)
        if plugin is not None:
            imported[candidate.key] = plugin
    # pluggy calls the plugin registered last first: registering backwards gives the documented order.
    for key, plugin in reversed(list(imported.items())):
        records[key] = _register(manager, key, plugin, records[key])
    if settings.strict:
        _raise_failures(records.values())
    return LoadedPlugins(
        records=tuple(records.values()),
        implementations={
            name: tuple(_implementations(manager, name, records)) for name in dir(hookspecs) if _is_hook_name(name)
        },
    )


class _Manager(pluggy.PluginManager):
    """Takes every function whose name starts with the prefix, marked or not."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        marked = super().parse_hookimpl_opts(plugin, name)
        if marked is None and _is_hook_name(name) and inspect.isroutine(inspect.getattr_static(plugin, name)):
            return dict.fromkeys(("wrapper", "hookwrapper", "optionalhook", "tryfirst", "trylast")) | {"specname": None}
        return marked


def _is_hook_name(name: str) -> bool:
    return name.startswith(hookspecs.PREFIX)


def _import(candidate: Candidate, settings: PluginSettings) -> tuple[PluginRecord, Any]:
    record = PluginRecord(
        name=candidate.name,
        distribution=candidate.distribution,
        version=candidate.version,
        status="built-in" if candidate.builtin else "loaded",
    )
    refusal = None if candidate.builtin else settings.refusal(candidate.name, candidate.distribution)
    if refusal is not None:
        return replace(record, status="blocked", error=refusal), None
    with observe() as observed:
        try:
            plugin = candidate.load()
            api = _checked_api(plugin)
        except (Exception, SystemExit) as error:
            return _failed(record, error, observed.notes()), None
    return replace(record, api=api, seconds=observed.seconds, notes=observed.notes()), plugin


def _checked_api(plugin: Any) -> tuple[int, int]:
    own = hookspecs.PLUGIN_API
    stated = getattr(plugin, "ESTIMATOR_PLUGIN_API", None)
    if stated is None:
        raise PluginError(f"it states no contract version; add `ESTIMATOR_PLUGIN_API = {own}` to its plugin module")
    if not (isinstance(stated, tuple) and len(stated) == 2 and all(isinstance(part, int) for part in stated)):
        raise PluginError(f"ESTIMATOR_PLUGIN_API is {stated!r}; it must be a pair of integers such as {own}")
    major, minor = stated
    if major != own[0] or minor > own[1]:
        cure = "upgrade estimator-core" if stated > own else "upgrade the plugin"
        raise PluginError(
            f"it was written for plugin contract {major}.{minor}; this core offers {own[0]}.{own[1]}: "
            f"{cure}, or uninstall the plugin"
        )
    return major, minor


def _register(manager: _Manager, key: str, plugin: Any, record: PluginRecord) -> PluginRecord:
    with observe() as observed:
        try:
            names = _checked_hook_names(plugin)
            manager.register(plugin, name=key)
            declared = {field: _declared(plugin, name, type_) for name, field, type_ in _DECLARATIONS if name in names}
        except (Exception, SystemExit) as error:
            if manager.has_plugin(key):
                manager.unregister(name=key)
            return _failed(record, error, observed.notes())
    seconds = record.seconds + observed.seconds
    return replace(record, hooks=names, seconds=seconds, notes=record.notes + observed.notes(), **declared)


def _checked_hook_names(plugin: Any) -> tuple[str, ...]:
    known = [name for name in dir(hookspecs) if _is_hook_name(name)]
    names: list[str] = []
    for name in dir(plugin):
        attribute = inspect.getattr_static(plugin, name)
        options = getattr(attribute, f"{hookspecs.PROJECT}_impl", None)
        if isinstance(options, dict) and (options.get("wrapper") or options.get("hookwrapper")):
            raise PluginError(f"{name} is a hook wrapper; this contract has none")
        if isinstance(options, dict) and options.get("specname"):
            raise PluginError(f"{name} uses specname=; give the function the name of its specification")
        if isinstance(options, dict) and options.get("optionalhook") and name not in known:
            continue
        if isinstance(options, dict) or (_is_hook_name(name) and inspect.isroutine(attribute)):
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
                raise PluginError(f"there is no hook specification {name}{hint}")
            names.append(name)
    return tuple(names)


def _declared(plugin: Any, name: str, type_: type) -> tuple[Any, ...]:
    given = getattr(plugin, name)()
    if given is None:
        raise PluginError(f"{name}() returned None; it must return a list of {type_.__name__} records")
    declared: tuple[Any, ...] = tuple(given)
    seen: set[tuple[str, str]] = set()
    for item in declared:
        if not isinstance(item, type_):
            raise PluginError(f"{name}() gave {item!r}; it must give {type_.__name__} records")
        key = (getattr(item, "kind", ""), getattr(item, "name", ""))
        if key in seen:
            raise PluginError(f"{name}() declares {' '.join(filter(None, key))!r} twice")
        seen.add(key)
    return declared


def _failed(record: PluginRecord, error: BaseException, notes: tuple[str, ...]) -> PluginRecord:
    reason = f"sys.exit({error.code!r}) was called while it was loaded" if isinstance(error, SystemExit) else str(error)
    named = reason if isinstance(error, PluginError | SystemExit) else f"{type(error).__name__}: {reason}"
    return replace(
        record,
        status="failed",
        error=named,
        traceback="".join(traceback.format_exception(error)),
        notes=record.notes + notes,
    )


def _raise_failures(records: Any) -> None:
    failed = [record for record in records if record.status == "failed"]
    if failed:
        lines = "".join(f"\n  {record.label}, entry point {record.name!r}: {record.error}" for record in failed)
        raise PluginError(f"plugins are strict and these failed:{lines}\nFix or uninstall them, or block them by name.")


def _implementations(manager: _Manager, name: str, records: dict[str, PluginRecord]) -> Iterator[Implementation]:
    for implementation in reversed(getattr(manager.hook, name).get_hookimpls()):
        record = records[implementation.plugin_name]
        yield Implementation(record=record, function=implementation.function, argnames=tuple(implementation.argnames))
