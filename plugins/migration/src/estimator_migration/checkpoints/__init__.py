"""Checkpoints of TensorFlow turned into checkpoints that training goes on from."""

from estimator_migration.checkpoints.convert import Converted, convert
from estimator_migration.checkpoints.write import convert_checkpoint

__all__ = ["Converted", "convert", "convert_checkpoint"]
