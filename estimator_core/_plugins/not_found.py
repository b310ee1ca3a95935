"""Explains why a name was not found, with a remedy, such as a known distribution that is not installed.

Nothing else reads `known.json`. `nox -s known` writes the file from the declarations of the packages in this
repository.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import resources

from estimator_core._plugins.records import Kind, PluginRecord
from estimator_core._plugins.settings import normalise
from estimator_core._wrong_arguments import suggestion

#: The key of commands in the table. Names of kinds do not contain hyphens.
COMMANDS = "sub-commands"

#: The key of kinds that packages define.
KINDS = "defined-kinds"


def known_distribution(kind: str, name: str) -> str | None:
    """Returns the known distribution that provides a component of this kind, or of `COMMANDS`, and name; None if
    unknown.

    Example:
        >>> known_distribution("backend", "gpu")
        'estimator-backends-gpu'
    """
    return _table().get(kind, {}).get(name)


def known_names(kind: str) -> tuple[str, ...]:
    """Names of the known components of a kind, or of `COMMANDS`, installed or not.

    Example:
        >>> known_names("adapter")
        ('equinox', 'keras', 'linen', 'nnx')
    """
    return tuple(_table().get(kind, {}))


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    """Reads the table of distributions by kind and name of the component."""
    return json.loads(resources.files("estimator_core._plugins").joinpath("known.json").read_text(encoding="utf-8"))


#: Common other words for components, with the name of each.
_OTHER_WORDS = {"cuda": "gpu", "nvidia": "gpu", "rocm": "gpu"}


def explain_unknown_kind(kind: str, kinds: Iterable[str], records: Iterable[PluginRecord]) -> str:
    """Returns the end of a sentence about an undefined kind: close names, all names, and what may define the kind."""
    known, records = tuple(kinds), tuple(records)
    source = list(_source(KINDS, kind, records))
    lines = [f"kinds are {', '.join(known)}", *source]
    if not source and (near := suggestion(kind, known, "")):
        return f"{near} {lines[0]}"
    lines += failures(records, "defines")
    blocked = [record.label for record in records if record.status == "blocked"]
    lines += [f"Not loaded, and may define it: {', '.join(blocked)}."] if blocked else []
    return "\n  ".join(lines)


def explain_absence(kind: Kind, name: str, names: Sequence[str], records: Iterable[PluginRecord]) -> str:
    """Returns the text of the look-up error: close names, all names, what to install, and every plugin that did not
    load.

    Args:
        kind: the requested kind.
        name: the requested name, which may be `distribution:name`.
        names: the available names.
        records: the records of all plugins.
    """
    records = tuple(records)
    lines = [f"there is no {kind.name} {name!r}."]
    close = [_OTHER_WORDS[name]] if name in _OTHER_WORDS else get_close_matches(name, names, n=3)
    lines += [f"Did you mean {' or '.join(repr(one) for one in close)}?"] if close else []
    wanted = close[0] if close and close[0] not in names else name
    lines.append(f"Installed {kind.title}: {', '.join(names)}." if names else f"No {kind.title} are installed.")
    return "\n  ".join([*lines, *explain_source(kind.name, wanted, records)])


def failures(records: Iterable[PluginRecord], does: str = "provides") -> list[str]:
    """Returns a line for each plugin that failed to load, because it may provide or define the missing name."""
    failed = (record for record in records if record.status == "failed")
    return [f"{record.label} failed to load and may be what {does} it: {record.error}" for record in failed]


def explain_source(kind: str, name: str, records: Sequence[PluginRecord]) -> list[str]:
    """Returns the package to install for a missing component, and every plugin that did not load."""
    lines = list(_source(kind, name, records))
    if ":" in name:  # no other plugin can be meant
        return lines
    lines += failures(records)
    blocked: dict[str, list[str]] = {}
    for record in records:
        if record.status == "blocked":
            blocked.setdefault(record.error, []).append(record.label)
    lines.extend(f"Not loaded ({why}): {', '.join(labels)}." for why, labels in blocked.items())
    return lines


def _source(kind: str, name: str, records: Iterable[PluginRecord]) -> Iterable[str]:
    """Yields the remedy for the known distribution of a component."""
    owner, _, plain = name.rpartition(":")
    distribution = owner or known_distribution(kind, plain)
    if distribution is None:
        return
    for record in records:
        if normalise(record.owner) == normalise(distribution):
            if not record.usable:
                yield f"{record.label} provides it, but is {record.status}: {record.error}."
            elif not owner:
                yield f"It comes with {distribution}, but not with {record.version}, which is installed: upgrade it."
            return
    if not owner or owner == known_distribution(kind, plain):
        yield f"It comes with {distribution}, which is not installed: pip install {distribution}"
