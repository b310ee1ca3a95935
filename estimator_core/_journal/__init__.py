"""The journal of a model_dir: an ordered history, written by one writer at a time."""

from estimator_core._journal.entries import Ended, Entry, Evaluated, Exported, Removed, Retired, Saved, Segment, Took
from estimator_core._journal.lineage import Lineage
from estimator_core._journal.reading import ended_since, lineage_of, read_lineage, refresh
from estimator_core._journal.writer import Journal, observe, take_over

__all__ = [
    "Ended",
    "Entry",
    "Evaluated",
    "Exported",
    "Journal",
    "Lineage",
    "Removed",
    "Retired",
    "Saved",
    "Segment",
    "Took",
    "ended_since",
    "lineage_of",
    "observe",
    "read_lineage",
    "refresh",
    "take_over",
]
