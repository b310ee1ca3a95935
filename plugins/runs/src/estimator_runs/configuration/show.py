"""The effective configuration, with the origin of each value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import tomli_w

from estimator_core.config import RunConfig
from estimator_runs.configuration.layers import KeyPath
from estimator_runs.configuration.reading import Read
from estimator_runs.configuration.run_config import run_config_fields
from estimator_runs.configuration.schema import NONE

_DEFAULT = "default"
_SECRET = re.compile(r"password|passwd|secret|token|api_?key|credential", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def effective(read: Read) -> Iterator[tuple[str, Any, str]]:
    """Key, value and origin of every effective value; secrets are hidden."""
    resolved = read.resolved
    dumped = read.configuration.model_dump(mode="python", exclude={"run_config"})
    # Values that nobody set are the defaults of RunConfig for the rest.
    config = RunConfig(**run_config_fields(read.configuration, resolved))
    said_there = read.configuration.run_config.model_dump(include=set(resolved.values.get("run_config", {})))
    dumped["run_config"] = {one.name: said_there.get(one.name, getattr(config, one.name)) for one in fields(config)}
    for path, value in _leaves(dumped, ()):
        said = _has(resolved.values, path)
        if value is None and not said and path[0] != "run_config":
            continue
        hidden = any(_SECRET.search(str(part)) for part in path[1:]) and isinstance(value, str)
        yield _key(path), "********" if hidden else value, str(resolved.origin(path)) if said else _DEFAULT


def show(read: Read) -> str:
    """The whole configuration as TOML: one line for each value, followed by its origin."""
    rows = [(f"{key} = {_toml(value)}", origin) for key, value, origin in effective(read)]
    width = max(len(line) for line, _ in rows if len(line) <= 60)
    return "\n".join(f"{line.ljust(width)}  # {origin}" for line, origin in rows)


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
