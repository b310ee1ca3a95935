"""Calls the run-level hooks of plugins. A failing hook is reported by name and does not stop the run."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from estimator_core._plugins.capabilities import adding_hooks, observed, read_only, without_batches
from estimator_core._plugins.discovery import Candidate
from estimator_core._plugins.loader import Implementation
from estimator_core._plugins.options import hint_for_entry_point
from estimator_core._plugins.plugin_code import import_target
from estimator_core._plugins.records import KINDS, PluginRecord
from estimator_core._plugins.settings import PluginSettings, matches, option_variable
from estimator_core.errors import PluginError

logger = logging.getLogger("estimator_core.plugins")


def warn_unmatched(settings: PluginSettings, installed: Sequence[Candidate]) -> None:
    """Logs the names on the allow and block lists that no installed distribution has."""
    for name in settings.unmatched(one.identity for one in installed):
        hint = hint_for_entry_point(name, installed)
        logger.warning("plugin %r is named on a list of plugins but is not installed%s", name, hint)


def warn_of_options(environ: Iterable[str], records: Sequence[PluginRecord]) -> None:
    """Logs the variables of options that no plugin has. The options of a plugin that did not load are unknown."""
    known = [option_variable(record.owner, option.name) for record in records for option in record.options]
    unread = tuple(option_variable(record.owner, "") for record in records if not record.usable)
    for variable in environ:
        if variable.startswith("ESTIMATOR_OPTION_") and variable not in known and not variable.startswith(unread):
            close = get_close_matches(variable, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            logger.warning("%s (or --plugin-option) sets no option of an installed plugin%s", variable, hint)


def warn_of_hooks(default_hooks: bool | Sequence[str], records: Sequence[PluginRecord], told: set[str]) -> None:
    """Logs the names in `RunConfig.default_hooks` that do not belong to a plugin.

    Args:
        default_hooks: the value of the field.
        records: the records of the plugins, including blocked ones.
        told: the names that were logged before. New ones are added.
    """
    owners = [record.owner for record in records]
    for name in () if isinstance(default_hooks, bool) else default_hooks:
        if name not in told and not any(matches((name,), owner) for owner in owners):
            told.add(name)
            close = get_close_matches(name, owners, n=1)
            hint = hint_for_entry_point(name, records) or (f"; did you mean {close[0]!r}?" if close else "")
            logger.warning("RunConfig(default_hooks=...) names plugin %r, which is not installed%s", name, hint)


class RunLevel:
    """The implementations of the run-level hook specifications, bound to the options of their plugins.

    Args:
        implementations: the implementations of each specification, in call order.
        options: the values of options, by plugin name.
        settings: the settings that decide whether a failing hook raises an error (`strict`), and whether calls are
            logged (`trace`).
    """

    def __init__(
        self,
        implementations: Mapping[str, tuple[Implementation, ...]],
        options: Mapping[str, Mapping[str, object]],
        settings: PluginSettings,
    ) -> None:
        self._implementations = implementations
        self._options = options
        self._settings = settings

    def options(self, record: PluginRecord) -> Mapping[str, Any]:
        """Returns the values of a plugin's options."""
        return dict(self._options[record.key])

    def run_hooks(self, run: Any) -> list[Any]:
        """Returns the hooks of all plugins for one call. Each plugin's list is checked before it is used."""
        contract = import_target(KINDS["hook"].contract)
        hooks: list[Any] = []
        for implementation in self._enabled("estimator_run_hooks", run.config):
            record = implementation.record
            seen = adding_hooks(run, record.label, record.capabilities)
            given = self._call("estimator_run_hooks", implementation, {"run": seen})
            for hook in self._listed("estimator_run_hooks", implementation, given, "hooks"):
                if isinstance(hook, contract):
                    if "changes_batches" not in record.capabilities:
                        without_batches(hook, f"{type(hook).__name__} of {record.label}")
                    hooks.append(hook)
                else:
                    wrong = f"returned {hook!r}, which is not a Hook"
                    if isinstance(hook, type):
                        wrong = f"returned class {hook.__qualname__}; return an object"
                    self._report("estimator_run_hooks", implementation, PluginError(wrong))
        return hooks

    def notify(self, name: str, config: Any, **arguments: Any) -> None:
        """Calls every implementation of a specification that the RunConfig does not disable."""
        for implementation in self._enabled(name, config):
            seen = dict(arguments)
            if "run" in seen:
                seen["run"] = observed(seen["run"], implementation.record.label)
            if "metrics" in seen:
                seen["metrics"] = read_only(seen["metrics"])
            self._call(name, implementation, seen)

    def rehearse(self, config: Any, **arguments: Any) -> list[Exception]:
        """Returns the faults that plugins predict for a run. Each names its plugin."""
        found: list[Exception] = []
        for implementation in self._enabled("estimator_rehearse", config):
            given = self._call("estimator_rehearse", implementation, arguments)
            for fault in self._listed("estimator_rehearse", implementation, given, "exceptions"):
                told = fault if isinstance(fault, Exception) else PluginError(str(fault))
                told.add_note(f"reported by estimator_rehearse of {implementation.record.label}")
                found.append(told)
        return found

    def call(self, name: str, arguments: Mapping[str, object]) -> list[Any]:
        """Returns the results of all implementations of a specification that a plugin defines, without None."""
        given = (self._call(name, implementation, arguments) for implementation in self._implementations[name])
        return [one for one in given if one is not None]

    def _enabled(self, name: str, config: Any) -> Iterator[Implementation]:
        """Yields the implementations that both `RunConfig.default_hooks` and the policy allow: all, none, or some."""
        allowed = (config.default_hooks, self._settings.policy.default_hooks)
        for implementation in self._implementations[name]:
            record = implementation.record
            if all(one is True or (one and matches(one, record.owner)) for one in allowed):
                yield implementation

    def _call(self, name: str, implementation: Implementation, arguments: Mapping[str, object]) -> Any:
        start = time.perf_counter()
        try:
            return implementation(**arguments, options=self.options(implementation.record))
        except (Exception, SystemExit) as error:
            self._report(name, implementation, error)
            return None
        finally:
            if self._settings.trace:
                logger.info(
                    "%s of %s took %.1f ms", name, implementation.record.label, 1e3 * (time.perf_counter() - start)
                )

    def _listed(self, name: str, implementation: Implementation, given: Any, what: str) -> Iterable[Any]:
        """Returns the result of an implementation, which must be a list or None."""
        if given is None or isinstance(given, Iterable):
            return cast("Iterable[Any]", given or ())
        wrong = f"returned an object of type {type(given).__name__}; it must return a list of {what}"
        self._report(name, implementation, PluginError(wrong))
        return ()

    def _report(self, name: str, implementation: Implementation, error: BaseException) -> None:
        label, owner = implementation.record.label, implementation.record.owner
        if self._settings.strict:
            raise PluginError(f"{name} of {label} failed: {type(error).__name__}: {error}") from error
        logger.warning(
            "%s of %s failed and was left out: %s: %s (switch the plugin off: ESTIMATOR_PLUGINS_BLOCK=%s; "
            "make this an error: ESTIMATOR_STRICT_PLUGINS=1)",
            name,
            label,
            type(error).__name__,
            error,
            owner,
            exc_info=error,
        )
