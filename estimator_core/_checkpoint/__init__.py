"""Checkpoints: save in the background, commit whole or not at all, restore what is proven intact."""

from estimator_core._checkpoint.diff import VariableDiff, compare
from estimator_core._checkpoint.items import ITEM_NAMES, CheckpointItems
from estimator_core._checkpoint.layout import (
    all_checkpoints,
    being_written,
    checkpoint_step,
    latest_checkpoint,
    resolve_checkpoint,
)
from estimator_core._checkpoint.lock import ModelDirLock
from estimator_core._checkpoint.manifest import ArrayEntry, Manifest, read_manifest
from estimator_core._checkpoint.newest import Restored, read_latest
from estimator_core._checkpoint.preemption import RESUMABLE_EXIT_STATUS, Preemption
from estimator_core._checkpoint.read import list_variables, load_variables, read_checkpoint
from estimator_core._checkpoint.restore import check_fits, restore
from estimator_core._checkpoint.retention import Retention
from estimator_core._checkpoint.saved import PendingCheckpoint
from estimator_core._checkpoint.store import CheckpointStore

__all__ = [
    "ITEM_NAMES",
    "RESUMABLE_EXIT_STATUS",
    "ArrayEntry",
    "CheckpointItems",
    "CheckpointStore",
    "Manifest",
    "ModelDirLock",
    "PendingCheckpoint",
    "Preemption",
    "Restored",
    "Retention",
    "VariableDiff",
    "all_checkpoints",
    "being_written",
    "checkpoint_step",
    "check_fits",
    "compare",
    "latest_checkpoint",
    "list_variables",
    "load_variables",
    "read_checkpoint",
    "read_latest",
    "read_manifest",
    "resolve_checkpoint",
    "restore",
]
