"""The journal of a model_dir: an ordered history, written by one writer at a time."""

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
    lineage_of,
    observe,
    read_lineage,
    refresh,
    take_over,
)
from estimator_core._journal.collection import collect, new_place
from estimator_core._journal.entries import JournalError
from estimator_core._journal.leases import LEASE_SECONDS, Lease, lease
from estimator_core._journal.views import results_in, write_results_files

__all__ = [
    "LEASE_SECONDS",
    "Ended",
    "Entry",
    "Evaluated",
    "Exported",
    "Journal",
    "JournalError",
    "Lease",
    "Lineage",
    "Removed",
    "Retired",
    "Saved",
    "Segment",
    "Took",
    "collect",
    "lease",
    "lineage_of",
    "new_place",
    "observe",
    "read_lineage",
    "refresh",
    "results_in",
    "take_over",
    "write_results_files",
]
