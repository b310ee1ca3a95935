"""Checkpoints: find, read, save and restore them."""

from estimator_core._checkpoint import CheckpointItems, CheckpointStore, latest_checkpoint
from estimator_core._checkpoint.catalog import (
    all_checkpoints,
    being_written,
    checkpoint_step,
    committed_steps,
    manifest_digest,
    resolve_checkpoint,
)
from estimator_core._checkpoint.lock import is_held
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._checkpoint.read import list_variables, load_variables, read_checkpoint
from estimator_core._checkpoint.restore import restore
from estimator_core._checkpoint.shelf import Publisher, Shelf
from estimator_core._packs.entry import PACK_SUFFIX
from estimator_core._packs.packs import leave_away

__all__ = [
    "CheckpointItems",
    "CheckpointStore",
    "PACK_SUFFIX",
    "Publisher",
    "Shelf",
    "all_checkpoints",
    "being_written",
    "checkpoint_step",
    "committed_steps",
    "is_held",
    "latest_checkpoint",
    "leave_away",
    "list_variables",
    "load_variables",
    "manifest_digest",
    "read_checkpoint",
    "read_manifest",
    "resolve_checkpoint",
    "restore",
]
