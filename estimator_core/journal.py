"""The journal of a model_dir: what happened to it, in one order, by one writer at a time."""

from estimator_core._journal import (
    Ended,
    Entry,
    Evaluated,
    Exported,
    Journal,
    Lineage,
    Removed,
    Retired,
    Saved,
    Segment,
    Took,
    observe,
    read_lineage,
    refresh,
    take_over,
)
from estimator_core._journal.records import JournalError

__all__ = [
    "Ended",
    "Entry",
    "Evaluated",
    "Exported",
    "Journal",
    "JournalError",
    "Lineage",
    "Removed",
    "Retired",
    "Saved",
    "Segment",
    "Took",
    "observe",
    "read_lineage",
    "refresh",
    "take_over",
]
