"""Hashes equal to those of TensorFlow: FarmHash Fingerprint64 of byte strings, and its combination for crosses."""

from estimator_canned_tabular.hashing.cross import cross_fingerprints as cross_fingerprints
from estimator_canned_tabular.hashing.fingerprint import fingerprint64 as fingerprint64

__all__ = ["cross_fingerprints", "fingerprint64"]
