"""The journal of a model_dir: what happened to it, in one order, by one writer at a time."""

from estimator_core._journal.collection import collect, new_place
from estimator_core._journal.entries import Ended, Entry, Evaluated, Exported, Removed, Retired, Saved, Segment, Took
from estimator_core._journal.leases import LEASE_SECONDS, Lease, lease
from estimator_core._journal.lineage import Lineage
from estimator_core._journal.reading import read_lineage, refresh
from estimator_core._journal.writer import Journal, observe, take_over

__all__ = [
    "LEASE_SECONDS",
    "Ended",
    "Entry",
    "Evaluated",
    "Exported",
    "Journal",
    "Lease",
    "Lineage",
    "Removed",
    "Retired",
    "Saved",
    "Segment",
    "Took",
    "collect",
    "lease",
    "new_place",
    "observe",
    "read_lineage",
    "refresh",
    "take_over",
]
