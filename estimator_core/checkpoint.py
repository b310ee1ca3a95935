"""Checkpoints: find, read, save and restore them."""

from estimator_core._checkpoint import CheckpointItems, CheckpointStore, latest_checkpoint
from estimator_core._checkpoint.catalog import all_checkpoints
from estimator_core._checkpoint.fetched import resolve_checkpoint
from estimator_core._checkpoint.layout import being_written, checkpoint_step
from estimator_core._checkpoint.read import list_variables, load_variables, read_checkpoint
from estimator_core._checkpoint.restore import restore

__all__ = [
    "CheckpointItems",
    "CheckpointStore",
    "all_checkpoints",
    "being_written",
    "checkpoint_step",
    "latest_checkpoint",
    "list_variables",
    "load_variables",
    "read_checkpoint",
    "resolve_checkpoint",
    "restore",
]
