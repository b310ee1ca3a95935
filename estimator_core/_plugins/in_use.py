"""The default plugins, and the component of a plugin that fills a role in a run."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

from estimator_core._hook_members import refuse_misfit
from estimator_core._moved import import_moved
from estimator_core._plugins.facade import Plugins
from estimator_core._plugins.plugin_code import import_target
from estimator_core._plugins.settings import policy_files
from estimator_core._roles import ROLES
from estimator_core.errors import ArgumentError, PluginError, PluginLookupError

_in_use: ContextVar[Plugins | None] = ContextVar("estimator_core_plugins_in_use", default=None)


def default_plugins() -> Plugins:
    """Returns the installed plugins that the environment selects.

    The object stays the same while the import path, the `ESTIMATOR_` variables and the place of the policy do not
    change. So a process scans only once, and nothing must be reset.
    """
    settings = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("ESTIMATOR_")))
    return _plugins(settings, tuple(sys.path), tuple(policy_files(os.environ, Path.cwd())))


@lru_cache(maxsize=8)
def _plugins(environ: tuple[tuple[str, str], ...], path: tuple[str, ...], policies: tuple[str, ...]) -> Plugins:
    return Plugins(environ=dict(environ))


@contextlib.contextmanager
def using_plugins(plugins: Plugins | None) -> Generator[None]:
    """Uses these plugins inside the block, for example in a model_fn that calls `ec.module`. None changes nothing."""
    token = _in_use.set(plugins or _in_use.get())
    try:
        yield
    finally:
        _in_use.reset(token)


def plugins_in_use() -> Plugins:
    """Returns the plugins of the Estimator whose model_fn is running, or the installed ones."""
    return _in_use.get() or default_plugins()


def require_components(choices: Mapping[str, str | None], plugins: Plugins) -> None:
    """Refuses a component that does not exist, also for a role that a run fills late, such as the check of exports.

    Raises:
        PluginLookupError: there is no such component, or there are several.
    """
    for role, name in choices.items():
        try:
            if name is not None:
                plugins.find(ROLES[role].kind, name)
        except PluginLookupError as error:
            raise PluginLookupError(f"RunConfig(components={{{role!r}: {name!r}}}): {error}") from error


def package_of(plugins: Plugins, module: str, distribution: str, what: str) -> Any:
    """Returns a module of a package that the core itself calls.

    Args:
        plugins: the registry, whose block list and policy apply.
        module: the module.
        distribution: the package that provides it.
        what: what needs the package, at the beginning of a message.

    Raises:
        ArgumentError: the package is missing or must not run. The message names it.
    """
    if (banned := plugins.banned(distribution)) is not None:
        raise ArgumentError(f"{what} needs {distribution}, which is {banned}.")
    try:
        return import_moved(module, distribution, what)
    except ModuleNotFoundError as error:
        raise ArgumentError(str(error)) from error


def component_of(role: str, choices: Mapping[str, str | None], plugins: Plugins, **arguments: object) -> Any:
    """Creates the component of a role; None if the role stays empty.

    Args:
        role: one of `ROLES`.
        choices: `RunConfig.components`.
        plugins: the registry that provides components.
        arguments: the arguments for the component. Those that it does not accept are omitted.

    Raises:
        PluginLookupError: there is no such component, or there are several.
        PluginError: the component cannot be created, or does not implement the contract of its kind.
    """
    known = ROLES[role]
    # The default is looked up by its full name, so a plugin cannot replace it with a component of the same name.
    name = choices.get(role, plugins.default(known.kind, known.default))
    if name is None:
        return None
    where = f"RunConfig(components={{{role!r}: {name!r}}})"
    require_components({role: name}, plugins)
    make, label = plugins.get(known.kind, name), plugins.find(known.kind, name).describe()
    try:
        made = make(**_taken(make, arguments))
    except Exception as error:
        raise PluginError(
            f"{where}: {label} cannot be made for this role, which passes the arguments {sorted(arguments)}: "
            f"{type(error).__name__}: {error}"
        ) from error
    contract = import_target(plugins.kinds()[known.kind].contract)
    told = f"{where}: {label} returned an object of {type(made).__qualname__}"
    if not isinstance(made, contract) and not getattr(contract, "_is_protocol", False):
        raise PluginError(f"{told}, which does not implement {contract.__name__}")
    refuse_misfit(made, contract, told, PluginError)
    return made


def _taken(make: Callable[..., Any], arguments: Mapping[str, object]) -> dict[str, Any]:
    parameters = inspect.signature(make).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return dict(arguments)
    by_name = [name for name, parameter in parameters.items() if parameter.kind is not parameter.POSITIONAL_ONLY]
    return {name: value for name, value in arguments.items() if name in by_name}
