"""Makes the component that fills a role in a run, by its name in the configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from estimator_core._plugins.facade import Plugins
from estimator_core._plugins.targets import import_target
from estimator_core._roles import ROLES
from estimator_core.errors import PluginError, PluginLookupError


def component_of(role: str, choices: Mapping[str, str | None], plugins: Plugins, **arguments: object) -> Any:
    """Makes the component of a role; None if the role stays empty.

    Args:
        role: one of `ROLES`.
        choices: `RunConfig.components`.
        plugins: where names are looked up.
        arguments: the arguments for the component; those that it does not take are left out.

    Raises:
        PluginLookupError: there is no such component, or there are several.
        PluginError: it cannot be made, or does not keep the contract of its kind.
    """
    known = ROLES[role]
    # The default is looked up by its full name, so no plugin can replace it with a component of the same name.
    name = choices.get(role, plugins.default(known.kind, known.default))
    if name is None:
        return None
    where = f"RunConfig(components={{{role!r}: {name!r}}})"
    try:
        make = plugins.get(known.kind, name)
    except PluginLookupError as error:
        raise PluginLookupError(f"{where}: {error}") from error
    label = plugins.find(known.kind, name).describe()
    try:
        made = make(**_taken(make, arguments))
    except Exception as error:
        raise PluginError(
            f"{where}: {label} cannot be made for this role, which passes the arguments {sorted(arguments)}: "
            f"{type(error).__name__}: {error}"
        ) from error
    contract = plugins.kinds()[known.kind].contract
    if not isinstance(made, import_target(contract)):
        raise PluginError(f"{where}: {label} returned {made!r}, which does not implement {contract.partition(':')[2]}")
    return made


def _taken(make: Callable[..., Any], arguments: Mapping[str, object]) -> dict[str, Any]:
    parameters = inspect.signature(make).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return dict(arguments)
    by_name = [name for name, parameter in parameters.items() if parameter.kind is not parameter.POSITIONAL_ONLY]
    return {name: value for name, value in arguments.items() if name in by_name}
