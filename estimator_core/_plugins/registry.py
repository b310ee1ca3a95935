"""Looks up components by kind and name, and describes the plugins.

If two plugins provide one name, the look-up raises an error. There is never a silent choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType

from estimator_core._plugins.capabilities import CAPABILITIES
from estimator_core._plugins.records import KINDS, Component, Kind, PluginRecord
from estimator_core._plugins.run_level import logger
from estimator_core._plugins.settings import normalise
from estimator_core.errors import ArgumentError, PluginLookupError


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A component and the plugin that declares it."""

    component: Component
    plugin: PluginRecord

    @property
    def qualified(self) -> str:
        """The unambiguous name: `distribution:name`."""
        return f"{self.plugin.owner}:{self.component.name}"

    def describe(self) -> str:
        """Returns the description of the component for messages."""
        return f"{self.component.kind} {self.component.name!r} of {self.plugin.label} ({self.component.target})"


def remedy(name: str, plugins: Iterable[PluginRecord]) -> str:
    """Returns the remedy for a name of several plugins. A name cannot distinguish the entry points of one package.

    Example:
        >>> acme = PluginRecord(name="a", distribution="acme", version="1.0", status="loaded")
        >>> remedy("cpu", [acme, replace(acme, distribution="other")])
        "ask for 'acme:cpu' or 'other:cpu'"
        >>> remedy("cpu", [acme, replace(acme, name="b")])
        'only one entry point of acme may declare it'
    """
    owners = Counter(plugin.owner for plugin in plugins)
    if twice := [owner for owner, count in owners.items() if count > 1]:
        return f"only one entry point of {' and of '.join(twice)} may declare it"
    return f"ask for {' or '.join(repr(f'{owner}:{name}') for owner in owners)}"


class Registry:
    """All components of all usable plugins, by kind and name.

    Args:
        records: the records of all plugins, including broken and blocked ones (for error messages).

    Attributes:
        kinds: the kinds of the core and of usable plugins, by name.
    """

    def __init__(self, records: Iterable[PluginRecord]) -> None:
        self._records = tuple(records)
        own = {kind.name: kind for plugin in self._records if plugin.usable for kind in plugin.kinds}
        self.kinds: Mapping[str, Kind] = MappingProxyType({**KINDS, **own})
        self._entries: dict[str, dict[str, list[Registered]]] = {kind: {} for kind in self.kinds}
        for plugin in self._records:
            for component in plugin.components if plugin.usable else ():
                owners = self._entries[component.kind].setdefault(component.name, [])
                owners.append(Registered(component=component, plugin=plugin))

    def names(self, kind: str) -> tuple[str, ...]:
        """Returns the names that can be looked up, sorted, with `distribution:name` if two plugins provide one name."""
        entries = self._of(kind)
        plain = [name for name, owners in entries.items() if len(owners) == 1]
        qualified = [owner.qualified for owners in entries.values() if len(owners) > 1 for owner in owners]
        return tuple(sorted(plain + qualified))

    def find(self, kind: str, name: str, *, installed: bool = False) -> Registered:
        """Returns the component of this kind and name (`name` or `distribution:name`).

        Args:
            kind: the kind of the component.
            name: the name of the component. The part before a colon must be a distribution, not an entry point.
            installed: whether to ignore components passed in code.

        Raises:
            PluginLookupError: there is no such component, or there are several.
        """
        owner, _, plain = name.rpartition(":")
        found = self._of(kind).get(plain, [])
        if owner:
            found = [
                one
                for one in found
                if normalise(owner) == normalise(one.plugin.owner) and (one.plugin.distribution or not installed)
            ]
        if len(found) == 1:
            return found[0]
        if not found:
            from estimator_core._plugins.not_found import explain_absence

            raise PluginLookupError(explain_absence(self.kinds[kind], name, self.names(kind), self._records))
        names = dict.fromkeys(repr(one.qualified) for one in found)
        cure = f"Say which: {' or '.join(names)}; or block one of the plugins by name."
        if len(names) == 1:  # a name cannot distinguish the entry points of one package
            cure = f"Entry points of one package declare it: {', '.join(one.plugin.name for one in found)}. Keep one."
        raise PluginLookupError(
            f"{kind} {name!r} is provided by {len(found)} plugins: {'; '.join(one.describe() for one in found)}. {cure}"
        )

    def require_replaceable(self, override: str, chosen: str) -> None:
        """Refuses an override of a misspelt component, because it would silently replace nothing.

        A name that resembles no component may belong to a plugin that only other machines with the same policy have.
        The component that another name replaces may be that of a plugin that is not loaded. This is logged.

        Args:
            override: `kind.name`.
            chosen: the distribution that provides it instead, or `distribution:name`.

        Raises:
            ArgumentError: nobody defines the kind, or nobody provides the component and its name resembles another.
        """
        from estimator_core._plugins.not_found import COMMANDS, explain_absence, known_names

        kind, _, name = override.partition(".")
        known = {*self._of(kind), *known_names(kind)}
        if kind == "command":  # most are not components; a policy writes them with underscores
            typed = {one.name for record in self._records for one in record.commands}
            known |= {one.replace("-", "_") for one in (*typed, *known_names(COMMANDS))}
        provider, other, _ = chosen.partition(":")
        own = [record for record in self._records if normalise(record.owner) == normalise(provider)]
        if name in known or not own or not (close := get_close_matches(name, known, n=1)):
            return
        # Without another name, the provider itself must have the component. Else it may be of a plugin not loaded.
        if all(record.usable for record in (self._records if other else own)):
            raise ArgumentError(explain_absence(self.kinds[kind], name, sorted(known), self._records))
        told = "the policy overrides %s, which no plugin in use provides; did you mean '%s.%s'?"
        logger.warning(told, override, kind, close[0])

    def has_own(self, kind: str, name: str) -> bool:
        """Returns whether the core itself provides a component."""
        return any(one.plugin.builtin for one in self._of(kind).get(name, []))

    def records(self) -> tuple[PluginRecord, ...]:
        """Returns the records of all plugins, each with a note for every name that it shares with another plugin."""
        return tuple(replace(record, notes=(*record.notes, *self.collisions(record))) for record in self._records)

    def collisions(self, plugin: PluginRecord) -> list[str]:
        """Returns one line for each name that a plugin shares with another."""
        lines: list[str] = []
        for component in plugin.components:
            owners = self._entries[component.kind].get(component.name, [])
            others = [one.plugin for one in owners if one.plugin is not plugin]
            if others and any(one.plugin is plugin for one in owners):
                labels, advice = ", ".join(one.label for one in others), remedy(component.name, [plugin, *others])
                lines.append(f"{component.kind} {component.name!r} is also provided by {labels}; {advice}")
        return lines

    def _of(self, kind: str) -> dict[str, list[Registered]]:
        if kind not in self._entries:
            from estimator_core._plugins.not_found import explain_unknown_kind

            known = explain_unknown_kind(kind, self.kinds, self._records)
            raise ArgumentError(f"there is no kind of component {kind!r}; {known}")
        return self._entries[kind]


#: The largest number of packages of one version that are listed by name. Larger groups are released together and only
#: counted.
_NAMED = 5


def opening_line(records: Sequence[PluginRecord]) -> str:
    """Returns one line for the start of a run.

    Example:
        >>> opening_line(
        ...     [
        ...         PluginRecord(
        ...             name="acme", distribution="acme", version="2.0", status="loaded", capabilities=("adds_hooks",)
        ...         )
        ...     ]
        ... )
        'plugins: acme 2.0; hooks added to every run by: acme 2.0 (switch off: ESTIMATOR_PLUGINS_BLOCK=acme)'
    """
    loaded = [record for record in records if record.status == "loaded"]
    failed = [f"{record.label} ({' '.join(record.error.split())})" for record in records if record.status == "failed"]
    parts = [f"plugins: {', '.join(_labels(loaded)) or 'none'}"]
    for capability, words in CAPABILITIES.items():
        doing = [record for record in loaded if capability in record.capabilities]
        if doing:
            names = ",".join(record.owner for record in doing if record.distribution)  # as lists need one
            switch = f" (switch off: ESTIMATOR_PLUGINS_BLOCK={names})" if names and capability == "adds_hooks" else ""
            parts.append(f"{words}: {', '.join(record.label for record in doing)}{switch}")
    if failed:
        parts.append(f"failed to load: {', '.join(failed)}")
    return "; ".join(parts)


def _labels(records: Sequence[PluginRecord]) -> list[str]:
    """Returns the packages with their versions. Packages that share a version with many others are only counted."""
    counts = Counter(record.version for record in records if record.distribution)
    many = {version: count for version, count in counts.items() if version and count > _NAMED}
    alone = [record.label for record in records if not record.distribution or record.version not in many]
    return [
        *(f"{count} packages of version {version} (`estimator plugins`)" for version, count in many.items()),
        *alone,
    ]
