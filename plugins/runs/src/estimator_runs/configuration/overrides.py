"""`--set a.b=c`: reads settings of the command line."""

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
        texts: `key.in.full=value`. The value is in TOML or Python; any other value is a text.

    Raises:
        ConfigurationError: a text has another form.

    Example:
        >>> read_settings(["hparams.rate=1e-3", "run_config.backend=cpu"])[1].values
        {'run_config': {'backend': 'cpu'}}
    """
    return [_setting(text) for text in texts]


def layer_of(key: str, value: Any, origin: Origin) -> Layer | None:
    """A layer with one value; None: the key cannot be read.

    Example:
        >>> layer_of("hparams.rate", 0.1, Origin(source="trial 3")).values
        {'hparams': {'rate': 0.1}}
    """
    try:
        values = {} if "\n" in key else tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return None
    path = paths_of(values)[-1]
    inner: Any = values
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return Layer(whole=origin, values=values, origins=dict.fromkeys(paths_of(values)[1:], origin))


def _setting(text: str) -> Layer:
    key, equals, said = text.partition("=")
    layer = layer_of(key, _value(said), _SET) if equals else None
    if layer is None:
        raise ConfigurationError([Problem(origin=_SET, key="", text=f"{text!r}: write KEY=VALUE, as in hparams.a=1.")])
    return layer


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
