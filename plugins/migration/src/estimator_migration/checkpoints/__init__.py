"""Converts checkpoints of TensorFlow into checkpoints from which training continues."""

from estimator_migration.checkpoints.convert import Converted, convert
from estimator_migration.checkpoints.write import convert_checkpoint

__all__ = ["Converted", "convert", "convert_checkpoint"]
