"""Proofs that an old and a new program compute the same."""

from estimator_migration.proving.other_side import record
from estimator_migration.proving.proof import Proof, prove

__all__ = ["Proof", "prove", "record"]
