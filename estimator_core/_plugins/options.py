"""Values of the options that plugins declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from estimator_core._plugins.discovery import Candidate
from estimator_core._plugins.records import Option, PluginRecord
from estimator_core._plugins.settings import normalise, option_variable
from estimator_core._wrong_arguments import suggestion
from estimator_core.errors import ArgumentError

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def options_of_plugins(
    records: Sequence[PluginRecord],
    *,
    given: Mapping[str, Mapping[str, object]],
    policy: Mapping[str, Mapping[str, object]],
    environ: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    """Returns the values of the options of all usable plugins, by the key of the plugin.

    Each value reaches only the distribution that it names. A plugin passed in code receives no values from the policy,
    and none that name an installed distribution.

    Raises:
        ArgumentError: a value does not have the declared type, an option does not exist, or one variable sets options
            of several distributions.
    """
    installed = [record for record in records if record.distribution]
    named = {normalise(record.owner) for record in installed}
    code, rules = options_by_owner(given, records), options_by_owner(policy, installed)
    _refuse_shared_variables(records, environ)
    values: dict[str, dict[str, Any]] = {}
    for record in records:
        owner = normalise(record.owner)
        if record.usable and record.distribution is None and owner in named:
            values[record.key] = resolve_options(record, {}, {}, {})
        elif record.usable:
            ruled = rules.get(owner, {}) if record.distribution else {}
            values[record.key] = resolve_options(record, code.get(owner, {}), environ, ruled)
    return values


def _refuse_shared_variables(records: Iterable[PluginRecord], environ: Mapping[str, str]) -> None:
    """Refuses an ambiguous variable: `acme` with `tracker_token` and `acme-tracker` with `token` share one."""
    owners: dict[str, str] = {}
    for record in records:
        for option in record.options if record.usable else ():
            variable, label = option_variable(record.owner, option.name), f"{record.owner}.{option.name}"
            other = owners.setdefault(variable, label)
            if variable in environ and other != label:
                raise ArgumentError(
                    f"environment variable {variable} (or --plugin-option) sets both {other} and {label}; block one of "
                    "the plugins, or set the option in Plugins(options=...) or in the policy file"
                )


def resolve_options(
    record: PluginRecord, given: Mapping[str, object], environ: Mapping[str, str], policy: Mapping[str, object]
) -> dict[str, Any]:
    """Returns the value of every option of a plugin: from the environment, the arguments, the policy, or its default,
    in this order.

    Raises:
        ArgumentError: a value does not have the declared type.
    """
    values: dict[str, Any] = {}
    for option in record.options:
        variable = option_variable(record.owner, option.name)
        if variable in environ:
            values[option.name] = _typed(option, environ[variable], f"environment variable {variable}")
        elif option.name in given or option.name in policy:
            value = given[option.name] if option.name in given else policy[option.name]
            values[option.name] = _typed(option, value, f"option {record.owner}.{option.name}")
        else:
            values[option.name] = option.default
    return values


def hint_for_entry_point(name: str, plugins: Iterable[PluginRecord | Candidate]) -> str:
    """Returns the hint to name the distribution; "" if the name is not the name of an entry point.

    Example:
        >>> heads = PluginRecord(name="heads", distribution="acme-heads", version="1.0", status="loaded")
        >>> hint_for_entry_point("heads", [heads])
        "; plugins are named by their distribution: 'acme-heads'"
    """
    meant = sorted({one.distribution for one in plugins if one.name == name and one.distribution})
    return f"; plugins are named by their distribution: {' or '.join(map(repr, meant))}" if meant else ""


def options_by_owner(
    given: Mapping[str, Mapping[str, object]], records: Sequence[PluginRecord]
) -> Mapping[str, Mapping[str, Any]]:
    """Returns the given options, by the normalised name of their distribution.

    Raises:
        ArgumentError: options are not a mapping, their distribution is not installed, or it does not have them. Options
            of a blocked or broken plugin are not checked.
    """
    owners = {normalise(record.owner): record.owner for record in records}
    for name, values in given.items():
        if not isinstance(values, Mapping):
            raise ArgumentError(f"options of plugin {name!r} must be a mapping from names to values, not {values!r}")
        own = [record for record in records if normalise(record.owner) == normalise(name)]
        if not own:
            close = get_close_matches(normalise(name), owners, n=1)
            near = f"; did you mean {owners[close[0]]!r}?" if close else f"; plugins are {', '.join(owners.values())}"
            hint = hint_for_entry_point(name, records) or near
            raise ArgumentError(f"options are given for plugin {name!r}, which is not installed{hint}")
        if all(record.usable for record in own):
            _require_known(values, own)
    return {normalise(name): values for name, values in given.items()}


def _require_known(values: Mapping[str, object], own: Sequence[PluginRecord]) -> None:
    known = [option.name for record in own for option in record.options]
    for name in values:
        if name not in known:
            hint = suggestion(name, known, f"it has {', '.join(known) or 'no options'}")
            raise ArgumentError(f"plugin {own[0].label} has no option {name!r}; {hint}")


def _typed(option: Option, value: object, where: str) -> Any:
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
