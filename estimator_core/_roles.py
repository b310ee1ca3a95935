"""The roles in a run that components fill, and the default component of each role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from estimator_core.errors import ArgumentError, ArgumentTypeError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Role:
    """A role in a run.

    Attributes:
        name: the key in `RunConfig(components={name: ...})`.
        kind: the kind of the components that can fill it.
        default: the default component. It belongs to the core or, for `coordinator`, to a package of this repository.
        optional: whether it can stay empty (None).
    """

    name: str
    kind: str
    default: str
    optional: bool = True


_TABLE = (
    Role(name="coordinator", kind="coordinator", default="jax", optional=False),
    Role(name="export_check", kind="export_check", default="close", optional=False),
    Role(name="checkpoint_policy", kind="checkpoint_policy", default="cadence"),
    Role(name="nan_tensor", kind="hook", default="nan_tensor"),
    Role(name="step_counter", kind="hook", default="step_counter"),
    Role(name="summary_saver", kind="hook", default="summary_saver"),
    Role(name="log", kind="hook", default="logging_tensor"),
)
ROLES: Mapping[str, Role] = {role.name: role for role in _TABLE}


class Choices(Mapping[str, str | None]):
    """An immutable mapping of component names by role. Unlike `MappingProxyType`, it can be copied and pickled.

    Example:
        >>> Choices({"log": "acme_log"})
        {'log': 'acme_log'}
    """

    def __init__(self, names: Mapping[str, str | None]) -> None:
        self._names = dict(names)

    def __getitem__(self, role: str) -> str | None:
        return self._names[role]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(self._names)


def checked_choices(given: object) -> Choices:
    """Checks the components of a RunConfig.

    Raises:
        ArgumentError: a role does not exist, or cannot stay empty.
        ArgumentTypeError: the value is not a mapping from names to names or None.
    """
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f'components should map roles to names, for example {{"log": "acme_log"}}, given: {given!r}.'
        )
    for role, name in given.items():
        if role not in ROLES:
            hint = did_you_mean(role, ROLES)
            raise ArgumentError(f"components: there is no role {role!r}.{hint} Roles are {', '.join(ROLES)}.")
        if name is None and not ROLES[role].optional:
            raise ArgumentError(f"components[{role!r}] cannot be None; name a component of kind {ROLES[role].kind!r}.")
        if name is not None and (not isinstance(name, str) or not name):
            raise ArgumentTypeError(f"components[{role!r}] should be the name of a component or None, given: {name!r}.")
    return Choices(given)
