"""The journal of a model_dir: an ordered history, written by one writer at a time."""

from estimator_core._journal.derived import results_in, write_results_files
from estimator_core._journal.entries import (
    Ended,
    Entry,
    Evaluated,
    Exported,
    JournalError,
    Removed,
    Retired,
    Saved,
    Segment,
    Took,
)
from estimator_core._journal.garbage_collection import collect, new_place
from estimator_core._journal.leases import LEASE_SECONDS, Lease, lease
from estimator_core._journal.lineage import Lineage
from estimator_core._journal.reading import lineage_of, read_lineage, refresh
from estimator_core._journal.writer import Journal, observe, take_over

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
