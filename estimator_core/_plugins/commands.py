"""The sub-commands that plugins declare, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches

from estimator_core._plugins.not_found import COMMANDS, failures, known_distribution, known_names
from estimator_core._plugins.records import Command, PluginRecord
from estimator_core._plugins.registry import remedy
from estimator_core._plugins.settings import PluginSettings, normalise
from estimator_core.errors import PluginLookupError


class CommandTable:
    """The commands of all usable plugins. A call by a name with two owners raises an error, as with components.

    Args:
        records: the records of all plugins.
        settings: the settings that decide which of them may load.
    """

    def __init__(self, records: Iterable[PluginRecord], settings: PluginSettings) -> None:
        self._records, self._any = tuple(records), replace(settings, only=None)
        #: The `distribution:name` that the policy chooses for a command.
        self._chosen = dict(_overridden(settings.policy.overrides))
        self._owners: dict[str, list[tuple[Command, PluginRecord]]] = {}
        for record in self._records:
            for command in (*record.commands, *_components(record)) if record.usable else ():
                self._owners.setdefault(command.name, []).append((command, record))

    def listed(self) -> list[tuple[str, Command, PluginRecord]]:
        """Returns (name to type, command, plugin) for each command, sorted.

        The name is `distribution:name` if two plugins declare one name and the policy does not choose.
        """
        rows = [
            (command.name if len(owners) == 1 else f"{record.owner}:{command.name}", command, record)
            for owners in self._owners.values()
            for command, record in owners
            if command.name not in self._chosen
        ]
        rows += [(name, *row) for name in self._chosen for row in self._given_by(name)]
        return sorted(rows, key=lambda row: row[0])

    def find(self, name: str, others: Iterable[str] = ()) -> Command:
        """Returns the command of a name, or of `distribution:name`.

        Args:
            name: the name that the user typed.
            others: the names that exist elsewhere. They are suggested if they are close.

        Raises:
            PluginLookupError: there is no such command, or there are several. The message names the distribution of a
                known command.
        """
        found = self._given_by(name)
        if not found and name in self._chosen:
            raise PluginLookupError(
                f"{', '.join(self._any.policy.files)} overrides the command {name!r} with {self._chosen[name]!r}, "
                "which no plugin in use provides"
            )
        if len(found) == 1:
            return found[0][0]
        if found:
            advice = remedy(found[0][0].name, [record for _, record in found])
            raise PluginLookupError(f"command {name!r} is provided by several plugins; {advice}")
        if distribution := known_distribution(COMMANDS, name):
            raise PluginLookupError(self._absence(name, distribution))
        close = get_close_matches(name, {*(row[0] for row in self.listed()), *others, *known_names(COMMANDS)}, n=3)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        failed = "".join(f"\n  {line}" for line in failures(self._records))
        raise PluginLookupError(f"there is no command {name!r}.{hint} `estimator --help` lists all.{failed}")

    def _given_by(self, name: str) -> list[tuple[Command, PluginRecord]]:
        """Returns the commands of a name, or of `distribution:name`.

        For a name that the policy overrides, it returns the choice of the policy.
        """
        owner, _, plain = self._chosen.get(name, name).rpartition(":")
        rows = self._owners.get(plain, [])
        return [row for row in rows if not owner or normalise(owner) == normalise(row[1].owner)]

    def _absence(self, name: str, distribution: str) -> str:
        """Returns the reason why a command of a known distribution is missing, and the remedy."""
        for record in self._records:
            if record.distribution and normalise(record.distribution) == normalise(distribution):
                reason = f"is {record.status}: {record.error}" if not record.usable else "declares no such command"
                text = f"comes with {distribution}, which is installed, but its plugin {record.name!r} {reason}."
                if not record.usable and self._any.refusal(record.owner) is None:  # options do not override these
                    text += f" `estimator --plugins {record.owner} {name} ...` loads that plugin alone."
                return f"command {name!r} {text}"
        return f"command {name!r} comes with {distribution}, which is not installed: pip install {distribution}"


def _overridden(overrides: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the overrides of commands in a policy, each in the form in which it is typed."""
    for key, chosen in overrides.items():
        kind, _, name = key.partition(".")
        if kind == "command":
            owner, _, other = chosen.partition(":")
            yield name.replace("_", "-"), f"{owner}:{(other or name).replace('_', '-')}"


def _components(record: PluginRecord) -> list[Command]:
    """Returns the plugin's components of the kind `command`, which a plugin defines."""
    made = [one for one in record.components if one.kind == "command"]
    return [Command(name=one.name.replace("_", "-"), target=one.target, summary=one.summary) for one in made]
