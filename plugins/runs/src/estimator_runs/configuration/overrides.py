"""The reader of the settings of the command line: `--set a.b=c`."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError, did_you_mean
from estimator_experiment.hparams import HParams
from estimator_runs.configuration.layers import Layer, Origin, Resolved, name_of, paths_of
from estimator_runs.configuration.problems import ConfigurationError, Problem, refused

_SET = Origin(source="--set", directory=Path())


def read_settings(texts: Iterable[str]) -> list[Layer]:
    """Returns a layer for each setting.

    Args:
        texts: texts of the form `key.in.full=value`. The value is in TOML or Python. Any other value is a text.

    Raises:
        ConfigurationError: a text has another form.

    Example:
        >>> read_settings(["hparams.rate=1e-3", "run_config.backend=cpu"])[1].values
        {'run_config': {'backend': 'cpu'}}
    """
    return [_setting(text) for text in texts]


def of_same_types(settings: Iterable[Layer], files: Resolved) -> list[Layer]:
    """Returns settings whose hyperparameters have the types of the files, as `--hparams` requires.

    With [program], a setting may be a fraction although the file has a whole number: the program defines the types.

    Args:
        settings: the layers of `--set`.
        files: the merged files.

    Raises:
        ConfigurationError: a hyperparameter has another type, or a new name that is similar to one of the files.
    """
    settings = list(settings)
    known = files.values.get("hparams", {})
    known = known if isinstance(known, Mapping) else {}
    whole_only = not any("program" in layer.values for layer in (files, *settings))
    names = (
        {*known, *_searched([files.values, *(layer.values for layer in settings)])} if known and whole_only else None
    )
    problems: list[Problem] = []
    typed: list[Layer] = []
    for layer in settings:
        given: Any = layer.values.get("hparams")
        if not isinstance(given, Mapping):
            typed.append(layer)
            continue
        found = dict(given)
        for name in sorted(found.keys() - names) if names is not None else ():
            if (hint := did_you_mean(name, sorted(known))) and not _is_another(name, known):
                text = f"[hparams] has no such hyperparameter.{hint} If it is a new one, write it into the file."
                problems.append(Problem(origin=layer.whole, key=name_of(("hparams", name)), text=text))
        for name in found.keys() & known.keys():
            try:
                found[name] = _of_type(name, known[name], found[name], whole_only=whole_only)
            except ArgumentError as error:
                problems.append(Problem(origin=layer.whole, key=name_of(("hparams", name)), text=f"{error}."))
        typed.append(replace(layer, values={**layer.values, "hparams": found}))
    if problems:
        raise ConfigurationError(problems)
    return typed


def _is_another(name: str, known: Iterable[str]) -> bool:
    """Returns whether a name is similar to another one but not a misspelling, as `hidden2` or `rate_decay`."""
    letters = name.rstrip("0123456789")
    return any(name.startswith(f"{one}_") or letters == str(one).rstrip("0123456789") for one in known)


def _searched(values: Sequence[Mapping[str, Any]]) -> set[str]:
    """Returns the hyperparameters that a sweep or a population sets."""
    tables = [one.get(name) for one in values for name in ("sweep", "population")]
    spaces = [table.get(key) for table in tables if isinstance(table, Mapping) for key in ("space", "values")]
    keys = [str(key) for space in spaces if isinstance(space, Mapping) for key in space]
    return {key.removeprefix("hparams.") for key in keys}


def _of_type(name: str, first: Any, value: Any, *, whole_only: bool) -> Any:
    """Returns the value of a hyperparameter in the type of its first value.

    Args:
        name: the name of the hyperparameter.
        first: the value of the file.
        value: the value of the setting.
        whole_only: whether a whole number may not become a fraction.

    Raises:
        ArgumentError: the value has another type.
    """
    if type(first) is int and type(value) is float and not whole_only:
        return value
    hparams = HParams()
    try:
        hparams.add_hparam(name, first)
    except ArgumentError:  # the first value is invalid: the schema checks the new one
        return value
    hparams.set_hparam(name, value)
    return hparams.values()[name]


def layer_of(key: str, value: Any, origin: Origin) -> Layer | None:
    """Returns a layer with one value; None: the key cannot be read.

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
    try:
        layer = layer_of(key, _value(said), _SET) if equals else None
    except (RecursionError, MemoryError):  # raised by the parsers of TOML and Python
        raise ConfigurationError([Problem(origin=_SET, key=key, text="the value is nested too deeply.")]) from None
    if layer is None:
        raise refused(_SET, f"{text!r}: write KEY=VALUE, as in hparams.a=1.")
    return layer


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except ValueError:  # also for a number with thousands of digits
        parsed = {}
    if list(parsed) == ["value"]:
        return parsed["value"]
    try:
        found = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError):
        return text
    return list(found) if isinstance(found, tuple) else found
