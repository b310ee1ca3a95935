"""Loads candidates one by one, each isolated from the others, and records what happened."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pluggy

from estimator_core import hookspecs
from estimator_core._plugins.contract import HOOK_NAMES, checked_api, checked_hook_names, is_implementation
from estimator_core._plugins.discovery import Candidate
from estimator_core._plugins.observed_import import observe
from estimator_core._plugins.records import Command, Component, Option, PluginRecord
from estimator_core._plugins.settings import PluginSettings
from estimator_core.errors import PluginError

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
        implementations={name: tuple(_implementations(manager, name, records)) for name in HOOK_NAMES},
    )


class _Manager(pluggy.PluginManager):
    """Takes every function whose name starts with the prefix, marked or not."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        marked = super().parse_hookimpl_opts(plugin, name)
        if marked is None and is_implementation(plugin, name):
            return dict.fromkeys(("wrapper", "hookwrapper", "optionalhook", "tryfirst", "trylast")) | {"specname": None}
        return marked


def _import(candidate: Candidate, settings: PluginSettings) -> tuple[PluginRecord, Any]:
    record = PluginRecord(
        name=candidate.name,
        distribution=candidate.distribution,
        version=candidate.version,
        module=candidate.module,
        status="built-in" if candidate.builtin else "loaded",
    )
    exempt = candidate.builtin or candidate.given
    refusal = None if exempt else settings.refusal(candidate.name, candidate.distribution)
    if refusal is not None:
        return replace(record, status="blocked", error=refusal), None
    with observe() as observed:
        try:
            plugin = candidate.load()
            record = replace(record, api=checked_api(plugin))
        except (Exception, SystemExit) as error:
            plugin, record = None, _failed(record, error)
    return replace(record, seconds=observed.seconds, notes=observed.notes()), plugin


def _register(manager: _Manager, key: str, plugin: Any, record: PluginRecord) -> PluginRecord:
    with observe() as observed:
        try:
            names = checked_hook_names(plugin)
            manager.register(plugin, name=key)
            declared = {field: _declared(plugin, name, type_) for name, field, type_ in _DECLARATIONS if name in names}
        except (Exception, SystemExit) as error:
            if manager.has_plugin(key):
                manager.unregister(name=key)
            record = _failed(record, error)
        else:
            record = replace(record, hooks=names, **declared)
    return replace(record, seconds=record.seconds + observed.seconds, notes=record.notes + observed.notes())


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


def _failed(record: PluginRecord, error: BaseException) -> PluginRecord:
    reason = f"sys.exit({error.code!r}) was called while it was loaded" if isinstance(error, SystemExit) else str(error)
    named = reason if isinstance(error, PluginError | SystemExit) else f"{type(error).__name__}: {reason}"
    return replace(
        record,
        status="failed",
        error=named,
        traceback="".join(traceback.format_exception(error)),
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
