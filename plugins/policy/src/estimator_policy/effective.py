"""The effective settings for the plugins of a process or a run, with their sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core.plugins import PluginRecord, Policy, normalise, option_variable, policy_files
from estimator_policy.layers import Layer, Setting, resolve
from estimator_policy.reading import read_policy

if TYPE_CHECKING:
    from estimator_core.config import RunConfig

#: The environment variables that select plugins, and the setting of each.
_LISTS = {"ESTIMATOR_PLUGINS": "allow", "ESTIMATOR_PLUGINS_BLOCK": "block"}
_TRUE = ("1", "true", "yes", "on")
#: The environment variable with the names of the variables that a switch of the command line set.
_SWITCHED = "ESTIMATOR_COMMAND_LINE"
_ADDING = ("block", "lock")


def effective_settings(
    environ: Mapping[str, str],
    *,
    folder: Path,
    plugins: Iterable[PluginRecord] = (),
    config: RunConfig | None = None,
    run_file: Sequence[Layer] = (),
) -> tuple[Setting, ...]:
    """Returns the effective settings and their sources.

    Weakest first: the package, the policy file, the file of the run, RunConfig, the environment, the command line. A
    prohibition of the policy overrides all others.

    Args:
        environ: the environment.
        folder: the folder of the project, or one below it.
        plugins: the plugins whose options are read.
        config: the RunConfig of the run, or None without a run.
        run_file: the settings in a file of the run, weakest first: `default_hooks`, `component.ROLE`, `lock`, `allow`,
            `block`, `option OWNER.NAME`.

    Example:
        >>> found = effective_settings({"ESTIMATOR_PLUGINS_BLOCK": "acme"}, folder=Path("/"))
        >>> [(one.value, one.origin) for one in found if one.name == "block"]
        [(('acme',), 'environment variable ESTIMATOR_PLUGINS_BLOCK')]
    """
    files = policy_files(environ, folder)
    policy = read_policy(files)
    origin = f"policy {', '.join(files)}"
    layers = [
        _defaults(plugins),
        *([Layer(origin=origin, values=_of_policy(policy))] if files else []),
        *run_file,
        *([] if config is None else [_of_config(config)]),
        *_of_environment(environ, plugins),
    ]
    return tuple(_forbidden(one, policy, origin) for one in resolve(layers, adding=_ADDING))


def _defaults(plugins: Iterable[PluginRecord]) -> Layer:
    options = {f"option {record.owner}.{one.name}": one.default for record in plugins for one in record.options}
    values = {"allow": None, "block": (), "strict": False, "lock": (), "default_hooks": True, **options}
    return Layer(origin="default", values=values)


def _of_policy(policy: Policy) -> dict[str, Any]:
    given = {
        "allow": policy.allow,
        "block": policy.block or None,
        "strict": policy.strict or None,
        "lock": policy.locks or None,
        "default_hooks": None if policy.default_hooks is True else policy.default_hooks,
    }
    options = {
        f"option {owner}.{name}": value for owner, values in policy.options.items() for name, value in values.items()
    }
    overrides = {f"override {name}": owner for name, owner in policy.overrides.items()}
    return {name: value for name, value in given.items() if value is not None} | options | overrides


def _of_config(config: RunConfig) -> Layer:
    values: dict[str, Any] = {f"component.{role}": name for role, name in config.components.items()}
    if config.default_hooks is not True:
        values["default_hooks"] = config.default_hooks if config.default_hooks is False else tuple(config.default_hooks)
    if config.plugins_lock is not None:
        values["lock"] = (config.plugins_lock,)
    return Layer(origin="RunConfig", values=values)


def _of_environment(environ: Mapping[str, str], plugins: Iterable[PluginRecord]) -> Sequence[Layer]:
    """Returns one layer for each variable. Variables that a switch set are named after the command line."""
    read: dict[str, tuple[str, Any]] = {}
    for variable, name in _LISTS.items():
        if variable in environ:
            read[variable] = (name, tuple(part.strip() for part in environ[variable].split(",") if part.strip()))
    off = environ.get("ESTIMATOR_DISABLE_PLUGIN_AUTOLOAD", "").lower() in _TRUE
    if off and "ESTIMATOR_PLUGINS" not in environ:
        read["ESTIMATOR_DISABLE_PLUGIN_AUTOLOAD"] = ("allow", ())
    if "ESTIMATOR_STRICT_PLUGINS" in environ:
        read["ESTIMATOR_STRICT_PLUGINS"] = ("strict", environ["ESTIMATOR_STRICT_PLUGINS"].lower() in _TRUE)
    if environ.get("ESTIMATOR_PLUGINS_LOCK"):
        read["ESTIMATOR_PLUGINS_LOCK"] = ("lock", (environ["ESTIMATOR_PLUGINS_LOCK"],))
    for record in plugins:
        for option in record.options:
            variable = option_variable(record.owner, option.name)
            if variable in environ:
                read[variable] = (f"option {record.owner}.{option.name}", environ[variable])
    switched = environ.get(_SWITCHED, "").split(",")
    return [
        Layer(
            origin="command line" if variable in switched else f"environment variable {variable}",
            values={name: value},
        )
        for variable, (name, value) in sorted(read.items(), key=lambda row: row[0] in switched)
    ]


def _forbidden(setting: Setting, policy: Policy, origin: str) -> Setting:
    """Returns the setting without the parts that the policy forbids."""
    if setting.name == "strict" and policy.strict:
        return Setting(name="strict", value=True, origin=origin)
    limit = {"allow": policy.allow, "default_hooks": policy.default_hooks}.get(setting.name)
    if limit is None or limit is True or setting.origin == origin:
        return setting
    names: tuple[str, ...] = () if limit is False else limit
    asked = setting.value
    left = names if asked is None or asked is True else tuple(one for one in asked or () if _listed(one, names))
    return Setting(name=setting.name, value=left, origin=f"{setting.origin}, as far as the {origin} allows")


def _listed(name: str, names: Iterable[str]) -> bool:
    return normalise(name) in map(normalise, names)
