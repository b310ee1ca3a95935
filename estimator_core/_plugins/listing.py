"""Sentences and notes about the loaded plugins as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from estimator_core._plugins.records import PluginRecord
from estimator_core._plugins.registry import Registry


def with_collisions(records: Sequence[PluginRecord], registry: Registry) -> tuple[PluginRecord, ...]:
    """The records, each with a note for every name it shares with another plugin."""
    return tuple(replace(record, notes=(*record.notes, *registry.collisions(record))) for record in records)


def opening_line(records: Sequence[PluginRecord]) -> str:
    """One line for the start of a run.

    Example:
        >>> opening_line(
        ...     [
        ...         PluginRecord(
        ...             name="acme", distribution="acme", version="2.0", status="loaded", hooks=("estimator_run_hooks",)
        ...         )
        ...     ]
        ... )
        'plugins: acme 2.0; hooks added to every run by: acme 2.0 (switch off: ESTIMATOR_PLUGINS_BLOCK=acme)'
    """
    loaded = [record for record in records if record.status == "loaded"]
    adding = [record for record in loaded if "estimator_run_hooks" in record.hooks]
    failed = [f"{record.label} ({record.error})" for record in records if record.status == "failed"]
    parts = [f"plugins: {', '.join(record.label for record in loaded) or 'none'}"]
    if adding:
        names = ",".join(record.owner for record in adding)
        labels = ", ".join(record.label for record in adding)
        parts.append(f"hooks added to every run by: {labels} (switch off: ESTIMATOR_PLUGINS_BLOCK={names})")
    if failed:
        parts.append(f"failed to load: {', '.join(failed)}")
    return "; ".join(parts)
