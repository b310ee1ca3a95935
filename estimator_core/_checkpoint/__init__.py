"""Checkpoints: saved in the background, committed whole or not at all, and restored only if they are intact."""

from estimator_core._checkpoint.catalog import brought as brought
from estimator_core._checkpoint.catalog import latest_checkpoint as latest_checkpoint
from estimator_core._checkpoint.items import ITEM_NAMES as ITEM_NAMES
from estimator_core._checkpoint.items import CheckpointItems as CheckpointItems
from estimator_core._checkpoint.store import CheckpointStore as CheckpointStore
