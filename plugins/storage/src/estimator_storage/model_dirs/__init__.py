"""Model_dirs in object stores: a working copy for a run, and copies of checkpoints."""

from estimator_storage.model_dirs.checkpoints import fetched
from estimator_storage.model_dirs.working_copy import WorkingCopy

__all__ = ["WorkingCopy", "fetched"]
