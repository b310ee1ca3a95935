"""Sentences and notes about the loaded plugins as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from estimator_core._plugins.capabilities import CAPABILITIES
from estimator_core._plugins.records import PluginRecord
from estimator_core._plugins.registry import Registry

#: Packages of one version that are named one by one. A house with more releases them together, and a count says it.
_NAMED = 5


def with_collisions(records: Sequence[PluginRecord], registry: Registry) -> tuple[PluginRecord, ...]:
    """The records, each with a note for every name it shares with another plugin."""
    return tuple(replace(record, notes=(*record.notes, *registry.collisions(record))) for record in records)


def opening_line(records: Sequence[PluginRecord]) -> str:
    """One line for the start of a run.

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
    failed = [f"{record.label} ({record.error})" for record in records if record.status == "failed"]
    parts = [f"plugins: {', '.join(_labels(loaded)) or 'none'}"]
    for capability, words in CAPABILITIES.items():
        doing = [record for record in loaded if capability in record.capabilities]
        if doing:
            names = ",".join(record.owner for record in doing if record.distribution)  # no list names the others
            switch = f" (switch off: ESTIMATOR_PLUGINS_BLOCK={names})" if names and capability == "adds_hooks" else ""
            parts.append(f"{words}: {', '.join(record.label for record in doing)}{switch}")
    if failed:
        parts.append(f"failed to load: {', '.join(failed)}")
    return "; ".join(parts)


def _labels(records: Sequence[PluginRecord]) -> list[str]:
    """The packages with their versions; of those that share a version with many, their number."""
    counts = Counter(record.version for record in records if record.distribution)
    many = {version: count for version, count in counts.items() if version and count > _NAMED}
    alone = [record.label for record in records if not record.distribution or record.version not in many]
    return [
        *(f"{count} packages of version {version} (`estimator plugins`)" for version, count in many.items()),
        *alone,
    ]
