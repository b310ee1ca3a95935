"""Values of the options plugins declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from estimator_core._plugins.records import Option, PluginRecord
from estimator_core._plugins.settings import option_variable
from estimator_core.errors import ArgumentError

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def resolve_options(record: PluginRecord, given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The value of every option of a plugin: given, else from the environment, else its default.

    Raises:
        ArgumentError: an option given does not exist, or a value does not have the declared type.
    """
    known = [option.name for option in record.options]
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known) or 'no options'}"
            raise ArgumentError(f"plugin {record.name!r} ({record.label}) has no option {name!r}; {hint}")
    values: dict[str, Any] = {}
    for option in record.options:
        variable = option_variable(record.name, option.name)
        if option.name in given:
            values[option.name] = _typed(option, given[option.name], f"option {record.name}.{option.name}")
        elif variable in environ:
            values[option.name] = _typed(option, environ[variable], f"environment variable {variable}")
        else:
            values[option.name] = option.default
    return values


def check_option_owners(given: Mapping[str, Mapping[str, Any]], records: Iterable[PluginRecord]) -> None:
    """Refuses options for a plugin that is not installed; those of one that is blocked or broken are left alone."""
    names = [record.name for record in records]
    for name in given:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"plugins are {', '.join(names)}"
            raise ArgumentError(f"options are given for plugin {name!r}, which is not installed; {hint}")


def _typed(option: Option, value: Any, where: str) -> Any:
    if isinstance(value, option.type) and not (option.type is not bool and isinstance(value, bool)):
        return value
    if option.type is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        if option.type is bool and value.lower() in (*_TRUE, *_FALSE):
            return value.lower() in _TRUE
        if option.type in (int, float):
            try:
                return option.type(value)
            except ValueError:
                pass
    raise ArgumentError(f"{where} is {value!r}; it must be {option.type.__name__}")
