"""Loads candidates one by one, isolates and observes each import, and records the outcome."""

from __future__ import annotations

import io
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

import pluggy

from estimator_core import hookspecs
from estimator_core._hook_members import refuse_deferred
from estimator_core._plugins.capabilities import capabilities_of
from estimator_core._plugins.contract import (
    HOOK_NAMES,
    Definitions,
    check_arguments,
    checked_api,
    checked_hook_names,
    colliding,
    definitions_of,
    is_implementation,
)
from estimator_core._plugins.discovery import Candidate, made_for, refusal
from estimator_core._plugins.records import KINDS, Command, Component, Option, PluginRecord, declared
from estimator_core._plugins.settings import PluginSettings
from estimator_core.errors import PluginError

_ARRAYS = ("jax", "jaxlib", "numpy", "scipy", "orbax", "optax", "flax", "equinox", "keras", "tensorflow", "torch")
_DATA = ("pandas", "pyarrow", "sklearn", "grain", "tokenizers", "transformers", "onnx")
_PICTURES = ("tensorboardX", "tensorboard", "matplotlib", "IPython")
#: Packages that a module must not import at start-up.
HEAVY_PACKAGES = frozenset({*_ARRAYS, *_DATA, *_PICTURES})
SLOW_SECONDS = 0.1


@dataclass
class Observed:
    """The observations of an import. They are complete after the `with` block."""

    seconds: float = 0.0
    output: str = ""
    heavy: tuple[str, ...] = ()

    def notes(self) -> tuple[str, ...]:
        """Returns one line for each fault at import."""
        notes: list[str] = []
        if self.output.strip():
            notes.append(f"printed at import: {self.output.strip().splitlines()[0][:80]!r}")
        if self.heavy:
            notes.append(f"imports {', '.join(self.heavy)} at start-up; import them where they are used")
        if self.seconds > SLOW_SECONDS:
            notes.append(f"importing it took {self.seconds:.2f} s")
        return tuple(notes)


@contextmanager
def observe() -> Generator[Observed]:
    """Captures the output of the block, so that lists and JSON stay clean, and measures its time."""
    observed, buffer = Observed(), io.StringIO()
    before = HEAVY_PACKAGES & sys.modules.keys()
    start = time.perf_counter()
    try:
        with redirect_stdout(buffer), redirect_stderr(buffer):
            yield observed
    finally:
        observed.seconds = time.perf_counter() - start
        observed.output = buffer.getvalue()
        observed.heavy = tuple(sorted((HEAVY_PACKAGES & sys.modules.keys()) - before))


_DECLARATIONS: tuple[tuple[str, str, type], ...] = (
    ("estimator_components", "components", Component),
    ("estimator_commands", "commands", Command),
    ("estimator_options", "options", Option),
    ("estimator_capabilities", "capabilities", str),
)


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """One plugin's implementation of one hook specification."""

    record: PluginRecord
    function: Callable[..., Any]
    argnames: tuple[str, ...]

    def __call__(self, **arguments: object) -> Any:
        """Calls the implementation with the arguments that it accepts."""
        return self.function(**{name: arguments[name] for name in self.argnames})


@dataclass(frozen=True, kw_only=True)
class LoadedPlugins:
    """The outcome of loading.

    Attributes:
        records: the records of all plugins, in order.
        implementations: the implementations of each specification, in call order.
        arguments: the names of the arguments of each specification that a plugin defines.
    """

    records: tuple[PluginRecord, ...]
    implementations: dict[str, tuple[Implementation, ...]]
    arguments: dict[str, tuple[str, ...]]


def load_plugins(candidates: Sequence[Candidate], settings: PluginSettings) -> LoadedPlugins:
    """Imports, checks and registers every candidate that the settings allow.

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
    imported_records = dict(records)
    specs = _define(manager, imported, records)
    names = (*HOOK_NAMES, *specs)
    # pluggy first calls the plugin that was registered last, so registering backwards results in the documented order.
    for key, plugin in reversed(list(imported.items())):
        records[key] = _register(manager, key, plugin, records[key], names)
    _refuse_unknown_kinds(manager, records, imported_records)
    if settings.strict:
        _raise_failures(records.values())
    return LoadedPlugins(
        records=tuple(records.values()),
        implementations={name: tuple(_implementations(manager, name, records)) for name in names},
        arguments=specs,
    )


class _Manager(pluggy.PluginManager):
    """Registers every function whose name starts with the prefix, marked or not."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
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
    refused = refusal(candidate, settings)
    if refused is not None:
        return replace(record, status="blocked", error=refused), None
    with observe() as observed:
        try:
            plugin = candidate.load()
            record = replace(record, api=checked_api(plugin))
        except (Exception, SystemExit) as error:
            plugin, record = None, _failed(record, error)
    return replace(record, seconds=observed.seconds, notes=observed.notes()), plugin


def _define(
    manager: _Manager, imported: dict[str, Any], records: dict[str, PluginRecord]
) -> dict[str, tuple[str, ...]]:
    """Collects the definitions of plugins before their implementations and components, so that the order of plugins
    does not matter. Plugins whose definitions fail or collide are excluded. Returns the arguments of the
    specifications.
    """
    defined: dict[str, Definitions] = {}
    errors: dict[str, BaseException] = {}
    for key, plugin in imported.items():
        try:
            defined[key] = definitions_of(plugin)
        except (Exception, SystemExit) as error:
            errors[key] = error
    errors |= colliding(defined, {key: record.label for key, record in records.items()})
    for key, own in defined.items():
        if key in errors:
            continue
        try:
            if own.holder is not None:
                manager.add_hookspecs(own.holder)
        except Exception as error:
            errors[key] = error
        else:
            records[key] = replace(records[key], kinds=own.kinds, specs=own.specs)
    for key, error in errors.items():
        del imported[key]
        records[key] = _failed(records[key], error)
    return {name: _arguments(manager, name) for key in imported for name in records[key].specs}


def _arguments(manager: _Manager, name: str) -> tuple[str, ...]:
    spec = getattr(manager.hook, name).spec
    return tuple(argument for argument in spec.argnames if argument != "options")


def _refuse_unknown_kinds(
    manager: _Manager, records: dict[str, PluginRecord], imported: Mapping[str, PluginRecord]
) -> None:
    """Excludes plugins with a component of an undefined kind, together with their own kinds."""
    while True:
        kinds = [*KINDS, *(kind.name for record in records.values() if record.usable for kind in record.kinds)]
        for key, record in records.items():
            unknown = [one for one in record.components if one.kind not in kinds] if record.usable else []
            if unknown:
                from estimator_core._plugins.not_found import explain_unknown_kind

                text = explain_unknown_kind(unknown[0].kind, kinds, records.values())
                error = PluginError(
                    f"component {unknown[0].name!r}: its kind is {unknown[0].kind!r}, which no plugin defines; {text}"
                )
                manager.unregister(name=key)
                records[key] = _failed(imported[key], error)
                break
        else:
            return


def _register(manager: _Manager, key: str, plugin: object, record: PluginRecord, known: Sequence[str]) -> PluginRecord:
    with observe() as observed:
        try:
            names = checked_hook_names(plugin, known)
            for name in names:
                spec = getattr(manager.hook, name).spec
                check_arguments(plugin, name, spec.argnames)
                if name in HOOK_NAMES and spec.function.__annotations__["return"] == "None":  # observers of the core
                    refuse_deferred(plugin, (name,), "it cannot observe a run", PluginError)
            manager.register(plugin, name=key)
            stated = {field: declared(plugin, name, type_) for name, field, type_ in _DECLARATIONS if name in names}
            does = capabilities_of(stated.pop("capabilities", ()), names, record.api or hookspecs.PLUGIN_API)
        except (Exception, SystemExit) as error:
            if manager.has_plugin(key):
                manager.unregister(name=key)
            record = _failed(replace(record, kinds=(), specs=()), error)
        else:
            record = replace(record, hooks=names, capabilities=does, **stated)
    return replace(record, seconds=record.seconds + observed.seconds, notes=record.notes + observed.notes())


def _failed(record: PluginRecord, error: BaseException) -> PluginRecord:
    reason = f"sys.exit({error.code!r}) was called while it was loaded" if isinstance(error, SystemExit) else str(error)
    named = reason if isinstance(error, PluginError | SystemExit) else f"{type(error).__name__}: {reason}"
    named += made_for(error, record.distribution)
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
