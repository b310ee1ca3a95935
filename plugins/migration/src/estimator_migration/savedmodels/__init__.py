"""Reads exported models of TensorFlow without TensorFlow."""

from estimator_migration.savedmodels.read import read_saved_model
from estimator_migration.savedmodels.receiver import receiver_source
from estimator_migration.savedmodels.records import SavedModel

__all__ = ["SavedModel", "read_saved_model", "receiver_source"]
