"""The settings for plugins that result from a configuration: the same rows as `estimator plugins policy`."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_runs.configuration.layers import KeyPath
from estimator_runs.configuration.reading import Read
from estimator_runs.configuration.schema import NONE

if TYPE_CHECKING:
    from estimator_policy import Layer, Setting

#: The keys of a configuration file, and the names of the settings for them.
_NAMES: dict[KeyPath, str] = {
    ("run_config", "default_hooks"): "default_hooks",
    ("run_config", "plugins_lock"): "lock",
    ("plugins", "only"): "allow",
    ("plugins", "block"): "block",
}


def plugin_settings(read: Read) -> tuple[Setting, ...]:
    """Returns the effective value and the origin of each setting for plugins where this configuration is run.

    Empty without estimator-policy, which resolves the sources.
    """
    if importlib.util.find_spec("estimator_policy") is None:
        return ()
    from estimator_core.plugins import default_plugins
    from estimator_policy import effective_settings

    records = default_plugins().records()
    return effective_settings(os.environ, folder=Path.cwd(), plugins=records, run_file=list(_layers(read)))


def setting_name(path: KeyPath) -> str:
    """Returns the name of the setting for a key of a configuration; empty for all other keys.

    Example:
        >>> setting_name(("run_config", "components", "log")), setting_name(("hparams", "rate"))
        ('component.log', '')
    """
    match path:
        case ("run_config", "components", role):
            return f"component.{role}"
        case ("plugins", "options", owner, name):
            return f"option {owner}.{name}"
        case _:
            return _NAMES.get(path, "")


def _layers(read: Read) -> Iterator[Layer]:
    """Yields a layer for each value of the file or of `--set`, in the order of their strength."""
    from estimator_policy import Layer

    values = read.resolved.values
    run_config, plugins = values.get("run_config", {}), values.get("plugins", {})
    said: list[tuple[KeyPath, Any]] = [(path, _at(values, path)) for path in _NAMES if _at(values, path) is not None]
    said += [(("run_config", "components", role), name) for role, name in run_config.get("components", {}).items()]
    said += [
        (("plugins", "options", owner, name), value)
        for owner, options in plugins.get("options", {}).items()
        for name, value in options.items()
    ]
    for path, value in said:
        name = setting_name(path)
        given = (value,) if name == "lock" else tuple(value) if isinstance(value, list) else value
        yield Layer(origin=str(read.resolved.origin(path)), values={name: given})


def _at(values: Any, path: KeyPath) -> Any:
    for part in path:
        values = values.get(part, {})
    return None if values in ({}, NONE) else values
