"""`--set a.b=c`: settings of the command line."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from estimator_runs.configuration.layers import Layer, Origin, paths_of
from estimator_runs.configuration.problems import ConfigurationError, Problem

_SET = Origin(source="--set", directory=Path())


def read_settings(texts: Iterable[str]) -> list[Layer]:
    """A layer for each setting.

    Args:
        texts: `key.in.full=value`. The value is one of TOML or of Python; what is neither is a text.

    Raises:
        ConfigurationError: a text has another form.

    Example:
        >>> read_settings(["hparams.rate=1e-3", "run_config.backend=cpu"])[1].values
        {'run_config': {'backend': 'cpu'}}
    """
    return [_setting(text) for text in texts]


def _setting(text: str) -> Layer:
    key, equals, said = text.partition("=")
    try:
        values = tomllib.loads(f"{key} = 0") if equals and "\n" not in key else {}
    except tomllib.TOMLDecodeError:
        values = {}
    path = paths_of(values)[-1]
    if not path:
        raise ConfigurationError([Problem(origin=_SET, key="", text=f"{text!r}: write KEY=VALUE, as in hparams.a=1.")])
    inner: Any = values
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = _value(said)
    return Layer(whole=_SET, values=values, origins=dict.fromkeys(paths_of(values)[1:], _SET))


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        parsed = {}
    if list(parsed) == ["value"]:
        return parsed["value"]
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return list(found) if isinstance(found, tuple) else found
