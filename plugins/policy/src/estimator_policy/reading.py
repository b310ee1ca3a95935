"""Reads policy files, `estimator.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from estimator_core.errors import PluginError
from estimator_core.plugins import Policy, normalise

_KEYS = ("allow", "block", "options", "default_hooks", "overrides", "strict", "lock")


def read_policy(files: Sequence[str]) -> Policy:
    r"""Returns the combined policy of several files.

    All prohibitions hold, and the last file sets options and overrides.

    Raises:
        PluginError: a file cannot be read, or has an unknown setting.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "estimator.toml").write_text('[plugins]\nblock = ["free-widgets"]\n')
        >>> read_policy([str(folder / "estimator.toml")]).block
        ('free-widgets',)
    """
    policies = [_read(file) for file in files]
    allows = [policy.allow for policy in policies if policy.allow is not None]
    hooks = [policy.default_hooks for policy in policies if policy.default_hooks is not True]
    return Policy(
        files=tuple(files),
        allow=_common(allows) if allows else None,
        block=tuple(dict.fromkeys(name for policy in policies for name in policy.block)),
        options=_options(policy.options for policy in policies),
        default_hooks=_common([() if one is False else cast("tuple[str, ...]", one) for one in hooks])
        if hooks
        else True,
        overrides={name: owner for policy in policies for name, owner in policy.overrides.items()},
        strict=any(policy.strict for policy in policies),
        locks=tuple(dict.fromkeys(lock for policy in policies for lock in policy.locks)),
    )


def _common(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the names that all lists have."""
    first, *others = lists
    return tuple(name for name in first if all(normalise(name) in map(normalise, other) for other in others))


def _options(all_of_them: Iterable[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for options in all_of_them:
        for owner, values in options.items():
            merged.setdefault(normalise(owner), {}).update(values)
    return merged


def _read(file: str) -> Policy:
    try:
        text = Path(file).read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except (OSError, ValueError) as error:  # an unreadable policy must not count as one without prohibitions
        raise PluginError(f"the policy {file} cannot be read: {error}") from error
    _known(file, tables, ("plugins",), "table")
    plugins = _table(file, "plugins", tables.get("plugins", {}))
    _known(file, plugins, _KEYS, "setting")
    allow = plugins.get("allow")
    lock = plugins.get("lock", "")
    if not isinstance(lock, str):
        raise PluginError(f"the policy {file}: lock is {lock!r}; it must be the name of a file")
    return Policy(
        files=(file,),
        allow=None if allow is None else _names(file, "allow", allow),
        block=_names(file, "block", plugins.get("block", [])),
        options={
            owner: _table(file, f"options.{owner}", values)
            for owner, values in _table(file, "options", plugins.get("options", {})).items()
        },
        default_hooks=_hooks(file, plugins.get("default_hooks", True)),
        overrides=_overrides(file, _table(file, "overrides", plugins.get("overrides", {}))),
        strict=_truth(file, "strict", plugins.get("strict", False)),
        locks=(str(Path(file).resolve().parent / lock),) if lock else (),
    )


def _overrides(file: str, table: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, names in table.items():
        for name, owner in _table(file, f"overrides.{kind}", names).items():
            if not isinstance(owner, str) or not owner:
                raise PluginError(
                    f"the policy {file}: overrides.{kind}.{name} is {owner!r}; it must name the distribution that "
                    'provides the component, "acme-heads" or "acme-heads:other_name"'
                )
            found[f"{kind}.{name}"] = owner
    return found


def _hooks(file: str, value: object) -> bool | tuple[str, ...]:
    return value if isinstance(value, bool) else _names(file, "default_hooks", value)


def _truth(file: str, name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise PluginError(f"the policy {file}: {name} is {value!r}; it must be true or false")
    return value


def _names(file: str, name: str, value: object) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(item, str) and item for item in items):
        raise PluginError(f"the policy {file}: {name} is {value!r}; it must be a list of distribution names")
    return tuple(cast("list[str]", items))


def _table(file: str, name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PluginError(f"the policy {file}: {name} is {value!r}; it must be a table")
    return cast("dict[str, Any]", value)


def _known(file: str, table: Mapping[str, Any], names: Sequence[str], what: str) -> None:
    for name in table:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known names are {', '.join(names)}"
            raise PluginError(f"the policy {file} has the unknown {what} {name!r}; {hint}")
