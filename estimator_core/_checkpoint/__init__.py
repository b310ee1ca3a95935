"""Checkpoints: save in the background, commit whole or not at all, restore what is proven intact."""

from estimator_core._checkpoint.catalog import brought as brought
from estimator_core._checkpoint.catalog import latest_checkpoint as latest_checkpoint
from estimator_core._checkpoint.items import ITEM_NAMES as ITEM_NAMES
from estimator_core._checkpoint.items import CheckpointItems as CheckpointItems
from estimator_core._checkpoint.store import CheckpointStore as CheckpointStore
