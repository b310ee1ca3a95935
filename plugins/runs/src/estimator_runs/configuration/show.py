"""The effective configuration, with the origin of each value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import tomli_w

from estimator_core.config import RunConfig
from estimator_core.summaries import without_secrets
from estimator_experiment.program import default_model_dir
from estimator_runs.configuration.in_force import plugin_settings, setting_name
from estimator_runs.configuration.layers import KeyPath, paths_of
from estimator_runs.configuration.reading import Read
from estimator_runs.configuration.run_config import run_config_fields
from estimator_runs.configuration.schema import NONE

_DEFAULT = "default"
#: The keys that are always shown, whatever their origin.
_ALWAYS: tuple[KeyPath, ...] = (("run_config", "default_hooks"),)
_SECRET = re.compile(r"password|passwd|secret|token|api_?key|credential", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def effective(read: Read) -> Iterator[tuple[str, Any, str]]:
    """Yields key, value and origin of every effective value, with secrets hidden. The policy of the project applies."""
    resolved = read.resolved
    dumped = read.configuration.model_dump(mode="python", exclude={"run_config"})
    # Values that nobody set have the defaults that RunConfig computes from the others.
    config = RunConfig(**run_config_fields(read.configuration, resolved))
    said_there = read.configuration.run_config.model_dump(include=set(resolved.values.get("run_config", {})))
    dumped["run_config"] = {one.name: said_there.get(one.name, getattr(config, one.name)) for one in fields(config)}
    if config.model_dir is None:
        dumped["run_config"]["model_dir"] = default_model_dir(read.path)
    settings = {one.name: one for one in plugin_settings(read)}
    for path, value in _leaves(dumped, ()):
        said = _has(resolved.values, path)
        setting = settings.get(setting_name(path))
        if setting is not None and setting.origin != _DEFAULT and setting.name != "lock":
            yield _key(path), _hidden(path, setting.value), setting.origin
            continue
        if value is None and not said and path[0] != "run_config":
            continue
        yield _key(path), _hidden(path, value), str(resolved.origin(path)) if said else _DEFAULT


def beside(read: Read) -> Iterator[tuple[str, Any, str]]:
    """Yields name, value and origin, as `plugins policy` does, of the settings for plugins that the file lacks."""
    shown = {setting_name(path) for path in _ALWAYS} | {
        setting_name(path) for path in paths_of(read.resolved.values) if _has(read.resolved.values, path)
    }
    for one in plugin_settings(read):
        if one.name not in shown or one.name == "lock":
            yield one.name, _hidden(("", one.name), one.value), one.origin


def show(read: Read) -> str:
    """Returns the complete configuration as TOML: one line for each value, followed by its origin."""
    rows = [(f"{key} = {_toml(value)}", origin) for key, value, origin in effective(read)]
    rows += [(f"# {name}: {'all' if value is None else _toml(value)}", origin) for name, value, origin in beside(read)]
    width = max(len(line) for line, _ in rows if len(line) <= 60)
    return "\n".join(f"{line.ljust(width)}  # {origin}" for line, origin in rows)


def masked(value: Any, path: KeyPath = ()) -> Any:
    """Returns values in the form of JSON, with stars for secrets. Keys and patterns in texts identify these."""
    if isinstance(value, Mapping):
        return {str(key): masked(each, (*path, key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [masked(each, path) for each in value]
    hidden = _hidden(("", *path), value)
    return without_secrets([hidden])[0] if isinstance(hidden, str) else hidden


def _hidden(path: KeyPath, value: Any) -> Any:
    """Returns the value, or stars for a text whose key names a secret."""
    secret = isinstance(value, str) and any(_SECRET.search(str(part)) for part in path[1:])
    return "********" if secret else value


def _leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    elif not isinstance(value, Mapping) and not (value == [] and path[0] != "run_config"):
        yield path, value


def _has(values: Any, path: KeyPath) -> bool:
    for part in path:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _key(path: KeyPath) -> str:
    return ".".join(str(part) if _PLAIN.fullmatch(str(part)) else _toml(str(part)) for part in path)


def _toml(value: Any) -> str:
    written = tomli_w.dumps({"x": _writable(value)}, multiline_strings=False)
    if written.startswith("[") or written.count("\n") > 1:  # a table, or a list over several lines
        return _inline(_writable(value))
    return written.partition(" = ")[2].rstrip("\n")


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key((str(key),))} = {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return _toml(value)


def _writable(value: Any) -> Any:
    if value is None:
        return NONE
    if isinstance(value, Mapping):
        return {str(key): _writable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(each) for each in value]
    return value if isinstance(value, bool | int | float | str) else str(value)
