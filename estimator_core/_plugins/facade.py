"""`Plugins`, the only object through which the core uses plugins."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from estimator_core._hook_members import refuse_misfit
from estimator_core._plugins.discovery import (
    CODE,
    Candidate,
    allowed,
    builtin_candidate,
    code_of,
    given_candidates,
    installed_candidates,
    made_for,
)
from estimator_core._plugins.loader import LoadedPlugins, load_plugins
from estimator_core._plugins.options import options_of_plugins
from estimator_core._plugins.plugin_code import import_target
from estimator_core._plugins.records import Kind, PluginRecord
from estimator_core._plugins.registry import Registered, Registry, opening_line
from estimator_core._plugins.run_level import RunLevel, logger, warn_of_hooks, warn_of_options, warn_unmatched
from estimator_core._plugins.settings import policy_files, policy_of, resolve_settings
from estimator_core._wrong_arguments import suggestion
from estimator_core.errors import ArgumentError, PluginError, PluginLookupError

if TYPE_CHECKING:
    from estimator_core._plugins.commands import CommandTable
    from estimator_core.config import RunConfig
    from estimator_core.heads import Head
    from estimator_core.hooks import CheckpointPolicy, Hook, Run


class Configured(Protocol):
    """The part of an Estimator that `rehearse` and `export_written` read."""

    @property
    def config(self) -> RunConfig:
        """The RunConfig, which can disable plugins."""
        ...


class Plugins:
    """The plugins of a process or an Estimator. Finds components by kind and name, collects hooks and reports events.

    Nothing is scanned or imported before the first use, and nothing changes after it. Objects are independent of each
    other. They can be pickled: another process then finds its plugins with the same settings.

    Args:
        only: names of the distributions whose plugins may load. An empty list allows no plugins. None:
            `ESTIMATOR_PLUGINS`, or all.
        block: names of distributions whose plugins may not load, in addition to those of `ESTIMATOR_PLUGINS_BLOCK`.
        autoload: False loads only the plugins of the core, of `only` and of `extra`. None:
            `ESTIMATOR_DISABLE_PLUGIN_AUTOLOAD`.
        strict: whether a broken plugin raises an error instead of being listed. None: `ESTIMATOR_STRICT_PLUGINS`.
        lock: a file written by `estimator plugins lock`. Only the plugins in it may load. `ESTIMATOR_PLUGINS_LOCK` and
            the policy may name further files.
        extra: plugin modules that are not installed (notebooks, tests), or objects with hook functions as attributes.
        options: values of plugin options, by distribution and option name.
        environ: the environment to read, which overrides the arguments. None: the environment of the process.

    All of these override the policy file of the project, `estimator.toml`, except for what it forbids.

    Example:
        >>> plugins = Plugins(autoload=False)
        >>> plugins.names("backend")
        ('cpu',)
        >>> plugins.find("backend", "cpu").plugin.name
        'core'
    """

    def __init__(
        self,
        *,
        only: Iterable[str] | None = None,
        block: Iterable[str] | None = None,
        autoload: bool | None = None,
        strict: bool | None = None,
        extra: Sequence[object] = (),
        options: Mapping[str, Mapping[str, object]] | None = None,
        lock: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        policy = policy_of(policy_files(self._environ, Path.cwd()))
        self._settings = resolve_settings(
            self._environ, only=only, block=block, autoload=autoload, strict=strict, lock=lock, policy=policy
        )
        self._extra = tuple(extra)
        self._options = dict(options or {})
        self._lock = RLock()
        self._parts: tuple[LoadedPlugins, Registry, RunLevel] | None = None  # None: nothing has been scanned yet
        self._candidates: list[Candidate] = []
        self._code: list[dict[str, str]] | None = None
        self._used: dict[tuple[str, str], Registered] = {}
        self._told: set[str] = set()  # what was logged once: names of hooks, plugins, differences

    # Look-up. The contracts of other kinds are in layers above plugins, so their callers annotate the type of the
    # result.

    @overload
    def get(self, kind: Literal["head"], name: str) -> Callable[..., Head]: ...
    @overload
    def get(self, kind: Literal["hook"], name: str) -> Callable[..., Hook]: ...
    @overload
    def get(self, kind: Literal["checkpoint_policy"], name: str) -> Callable[..., CheckpointPolicy]: ...
    @overload
    def get(self, kind: str, name: str) -> Callable[..., Any]: ...

    def get(self, kind: str, name: str) -> Callable[..., Any]:
        """Imports and returns the target of a component: a class or function that returns the component when called.

        Args:
            kind: one of `kinds()`.
            name: the name, or `distribution:name` if two plugins provide the same name.

        Raises:
            PluginLookupError: there is no such component, or there are several. The message contains the remedy.
            PluginError: the target cannot be imported or called.
        """
        registered = self.find(kind, name)
        if registered.component.deprecated:
            from estimator_core._plugins.deprecation import warn_deprecated

            warn_deprecated(f"{kind} {name!r} of {registered.plugin.label}", instead=registered.component.deprecated)
        try:
            target = import_target(registered.component.target)
        except (Exception, SystemExit) as error:
            words = f"{type(error).__name__}: {error}{made_for(error, registered.plugin.distribution)}"
            raise PluginError(f"{registered.describe()} cannot be imported: {words}") from error
        if not callable(target):
            raise PluginError(f"{registered.describe()} is {target!r}, which cannot be called; name a class")
        with self._lock:
            self._used[kind, registered.qualified] = registered
        return target

    def make(self, kind: str, name: str, /, *arguments: object, **named: object) -> Any:
        """Creates a component with these arguments, and checks that it fulfils the contract of its kind.

        Args:
            kind: one of `kinds()`.
            name: the name, as for `get`.
            arguments: the arguments of its target.
            named: the arguments of its target that are passed by name.

        Raises:
            PluginLookupError: there is no such component, or there are several. The message contains the remedy.
            PluginError: the target cannot be imported or called. Or the component lacks a member of the contract, or
                has a method with other arguments. The message names the plugin and the member.
        """
        target, registered = self.get(kind, name), self.find(kind, name)
        try:
            made = target(*arguments, **named)
        except Exception as error:
            error.add_note(f"in the constructor of {registered.describe()}")
            raise
        if registered.plugin.builtin:  # the tests of the core compare these
            return made
        told = self.kinds()[kind].contract
        try:
            contract = import_target(told)
        except (Exception, SystemExit) as error:
            words = f"the contract {told} of kind {kind!r} cannot be imported"
            raise PluginError(f"{registered.describe()}: {words}: {type(error).__name__}: {error}") from error
        if isinstance(contract, type):  # the contract of an input is no class
            where = f"{registered.describe()} returned an object of {type(made).__qualname__}"
            refuse_misfit(made, contract, where, PluginError)
        return made

    def find(self, kind: str, name: str) -> Registered:
        """Returns the record of a component and of its plugin, without importing the component.

        Raises:
            PluginLookupError: there is no such component, or there are several.
        """
        override = self._settings.policy.overrides.get(f"{kind}.{name}")
        if override is None:
            return self._ready()[1].find(kind, name)
        try:
            return self._ready()[1].find(kind, override if ":" in override else f"{override}:{name}", installed=True)
        except PluginLookupError as error:
            where = f"{', '.join(self._settings.policy.files)} says {kind}.{name} = {override!r}"
            raise PluginLookupError(f"{where}: {error}") from error

    def default(self, kind: str, name: str) -> str:
        """Returns the full name of the component that the core uses by default: its own, or that of the package known
        for it. A policy may override it.
        """
        if f"{kind}.{name}" in self._settings.policy.overrides:
            return name
        if self._ready()[1].has_own(kind, name):
            return f"estimator-core:{name}"
        from estimator_core._plugins.not_found import known_distribution

        return f"{known_distribution(kind, name) or 'estimator-core'}:{name}"

    def options(self, kind: str, name: str) -> Mapping[str, Any]:
        """Returns the option values of the plugin that provides a component.

        Raises:
            PluginLookupError: there is no such component, or there are several.
        """
        return self._ready()[2].options(self.find(kind, name).plugin)

    def names(self, kind: str) -> tuple[str, ...]:
        """Returns the names that `get` accepts for a kind, sorted, with `distribution:name` if two plugins provide the
        same name.
        """
        overrides = self._settings.policy.overrides
        own = [key.partition(".")[2] for key in overrides if key.partition(".")[0] == kind]
        names = (name for name in self._ready()[1].names(kind) if name.rpartition(":")[2] not in own)
        return tuple(sorted([*names, *own]))

    def automatic(self, kind: str) -> tuple[str, ...]:
        """Returns the candidates for an automatic choice: those of the core, of plugins that declare "priority", and
        the overrides of the policy.
        """
        chosen, names = self._settings.policy.overrides, self.names(kind)
        plugins = {name: self.find(kind, name).plugin for name in names}
        first = (name for name, plugin in plugins.items() if plugin.builtin or "priority" in plugin.capabilities)
        return tuple(dict.fromkeys([*(name for name in names if f"{kind}.{name}" in chosen), *first]))

    def kinds(self) -> Mapping[str, Kind]:
        """Returns the kinds of components by name: `KINDS`, and those that plugins define."""
        return self._ready()[1].kinds

    def explain(self, kind: str, name: str) -> str:
        """Describes the origin of a component, or the reason why it is not found, with a remedy."""
        try:
            return self.find(kind, name).describe()
        except PluginLookupError as error:
            return str(error)

    def commands(self) -> CommandTable:
        """Returns the sub-commands that plugins declare."""
        from estimator_core._plugins.commands import CommandTable

        return CommandTable(self.records(), self._settings)

    # Listing

    def banned(self, distribution: str) -> str | None:
        """Returns why a package that the core itself calls may not run (the block list or the policy); None if it may.

        The allow list is for plugins that are added to runs automatically, so it does not apply to such a package.
        """
        return replace(self._settings, only=None).refusal(distribution)

    def records(self) -> tuple[PluginRecord, ...]:
        """Returns every plugin, including broken and blocked ones: those of the core, installed ones by name, and those
        passed in code.
        """
        return self._ready()[1].records()

    def versions(self) -> list[dict[str, str]]:
        """Returns the plugins in use, for manifests: `{"distribution", "version", "hash"}` each, sorted by
        distribution. The hash is that of the installed RECORD, or of the sources of an editable installation. A plugin
        that was passed in code is called `code:NAME`. It has no version, and its hash is that of its sources. "does"
        lists the capabilities of a plugin.
        """
        loaded = self._ready()[0]
        with self._lock:
            if self._code is None:
                usable = [one for one, record in zip(self._candidates, loaded.records, strict=True) if record.usable]
                self._code = code_of(usable)
            rows = [dict(row) for row in self._code]
        for record in loaded.records:
            for row in rows if record.capabilities else ():
                if row["distribution"] == (record.distribution or CODE + record.name):
                    row["does"] = ", ".join(record.capabilities)
        return rows

    def require_made_with(self, recorded: Iterable[Mapping[str, str]], what: str = "this checkpoint") -> None:
        """Logs once how the plugins differ from those that a checkpoint or export was made with.

        Args:
            recorded: `versions()` from its manifest.
            what: the name of the object that was made with them.

        Raises:
            PluginError: something differs and plugins are strict.
        """
        from estimator_core._plugins.manifest import compare_versions

        lines = compare_versions(recorded, self.versions(), what=what)
        if lines and self._settings.strict:
            raise PluginError("plugins are strict and these differ:" + "".join(f"\n  {line}" for line in lines))
        if (text := "\n  ".join(lines)) not in self._told | {""}:  # one record, because an upgrade changes all packages
            logger.warning("%s", text)
            self._told.add(text)

    def open_call(self, config: RunConfig) -> None:
        """Logs the opening line of a train, evaluate or predict call, and the same line of later calls for debugging.

        Raises:
            PluginError: the plugins are not those in the lock file of the configuration.
        """
        if config.plugins_lock is not None:
            from estimator_core._plugins.manifest import require_locked

            require_locked(config.plugins_lock, self.versions())
        line = self.opening_line()
        logger.log(logging.DEBUG if line in self._told else logging.INFO, "%s", line)
        self._told |= {line} if logger.isEnabledFor(logging.INFO) else set()
        if not logger.isEnabledFor(logging.INFO):  # a reader of warnings only must learn of it once
            failed = {one.label: one.error for one in self._ready()[0].records if one.status == "failed"}
            for label in failed.keys() - self._told:
                logger.warning("%s failed to load and is not used: %s", label, failed[label])
            self._told |= failed.keys()

    def used(self) -> list[dict[str, str]]:
        """Returns the components that `get` has returned so far, for manifests: `{"kind", "name", "distribution"}`,
        sorted.
        """
        with self._lock:
            used = list(self._used.values())
        rows = (
            {"kind": one.component.kind, "name": one.component.name, "distribution": one.plugin.owner} for one in used
        )
        return sorted(rows, key=lambda row: (row["kind"], row["name"], row["distribution"]))

    def opening_line(self) -> str:
        """Returns the opening line of a run: plugins with versions, those that add hooks, and those that failed to
        load.
        """
        line, overrides = opening_line(self._ready()[0].records), self._settings.policy.overrides.items()
        replaced = ", ".join(f"{name} by {owner}" for name, owner in overrides)
        return f"{line}; the policy replaces {replaced}" if replaced else line

    # Run-level hooks and observers

    def run_hooks(self, run: Run) -> list[Hook]:
        """Returns new hooks that installed plugins add to a call, in the order of the plugins.

        `RunConfig.default_hooks` can disable all or some of them, and also the observers below.
        """
        return self._ready()[2].run_hooks(run)

    def rehearse(self, estimator: Configured, train_spec: object, eval_specs: Sequence[object]) -> list[Exception]:
        """Returns the errors that plugins predict for a run that has not begun."""
        return self._ready()[2].rehearse(
            estimator.config, estimator=estimator, train_spec=train_spec, eval_specs=eval_specs
        )

    def run_start(self, run: Run) -> None:
        """Notifies plugins that a train, evaluate or predict call starts."""
        loaded, _, run_level = self._ready()
        warn_of_hooks(run.config.default_hooks, loaded.records, self._told)
        run_level.notify("estimator_run_start", run.config, run=run)

    def run_end(self, run: Run, error: BaseException | None) -> None:
        """Notifies plugins that a call ended, and of its error."""
        self._ready()[2].notify("estimator_run_end", run.config, run=run, error=error)

    def checkpoint_saved(self, run: Run, step: int, path: str) -> None:
        """Notifies plugins that a checkpoint was committed."""
        self._ready()[2].notify("estimator_checkpoint_saved", run.config, run=run, step=step, path=path)

    def evaluation_finished(self, run: Run, metrics: Mapping[str, object]) -> None:
        """Notifies plugins of the result of an evaluation."""
        self._ready()[2].notify("estimator_evaluation_finished", run.config, run=run, metrics=metrics)

    def export_written(self, estimator: Configured, path: str, format_name: str) -> None:
        """Notifies plugins that an export was written and checked."""
        self._ready()[2].notify(
            "estimator_export_written", estimator.config, estimator=estimator, path=path, format_name=format_name
        )

    # Hook specifications of plugins

    def call(self, specification: str, /, **arguments: object) -> list[Any]:
        """Calls a hook specification that a plugin defines. An implementation that fails is reported and skipped.

        Args:
            specification: the name of the specification.
            arguments: all arguments of the specification except `options`, which are specific to each plugin.

        Returns:
            The results of the implementations, without None, in the order of the plugins.

        Raises:
            PluginLookupError: no plugin in use defines it.
            ArgumentError: an argument is missing or unknown.
            PluginError: an implementation failed and plugins are strict.
        """
        loaded, _, run_level = self._ready()
        if specification not in loaded.arguments:
            defined = f"they define {', '.join(loaded.arguments) or 'none'}"
            hint = suggestion(specification, loaded.arguments, defined)
            raise PluginLookupError(f"no plugin in use defines the hook specification {specification!r}; {hint}")
        wanted = loaded.arguments[specification]
        if set(wanted) != set(arguments):
            raise ArgumentError(f"{specification} takes the arguments {list(wanted)}, given: {sorted(arguments)}")
        return run_level.call(specification, arguments)

    def _ready(self) -> tuple[LoadedPlugins, Registry, RunLevel]:
        with self._lock:
            if self._parts is None:
                installed = installed_candidates()
                warn_unmatched(self._settings, installed)
                candidates = [builtin_candidate(), *installed, *given_candidates(self._extra, installed)]
                if self._settings.locks:  # before any of their code runs
                    from estimator_core._plugins.manifest import require_locked

                    self._code = code_of(allowed(candidates, self._settings))
                    for file in self._settings.locks:
                        require_locked(file, self._code)
                loaded = load_plugins(candidates, self._settings)
                options = options_of_plugins(
                    loaded.records, given=self._options, policy=self._settings.policy.options, environ=self._environ
                )
                warn_of_options(self._environ, loaded.records)
                self._candidates = candidates
                registry = Registry(loaded.records)
                for override, chosen in self._settings.policy.overrides.items():
                    try:
                        registry.require_replaceable(override, chosen)
                    except ArgumentError as error:
                        files = ", ".join(self._settings.policy.files)
                        raise ArgumentError(f"{files} overrides {override}: {error}") from error
                self._parts = loaded, registry, RunLevel(loaded.implementations, options, self._settings)
            return self._parts

    def __getstate__(self) -> dict[str, Any]:
        extra = [("module", one.__name__) if isinstance(one, ModuleType) else ("object", one) for one in self._extra]
        return {"settings": self._settings, "environ": self._environ, "options": self._options, "extra": extra}

    def __setstate__(self, state: dict[str, Any]) -> None:
        extra = [import_target(one) if how == "module" else one for how, one in state["extra"]]
        Plugins.__init__(self, extra=extra, options=state["options"], environ=state["environ"])
        self._settings = state["settings"]
