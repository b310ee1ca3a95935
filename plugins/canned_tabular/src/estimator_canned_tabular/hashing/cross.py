"""The hash of a combination of values, from the fingerprints of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from estimator_canned_tabular.hashing.words import Words, shift_mix, word

_FACTOR = 0xC6A4A7935BD1E995
#: The start value of a cross without its own key.
DEFAULT_KEY = 0xDECAFCAFFE


def cross_fingerprints(parts: Sequence[Words], key: int | None = None) -> Words:
    """Returns the fingerprints of combinations. Element i of the result belongs to element i of every part.

    Args:
        parts: uint64 arrays of one shape: fingerprints of strings, or unchanged numbers.
        key: the start value of the hash; None: the one of TensorFlow.

    Example:
        >>> from estimator_canned_tabular.hashing import fingerprint64
        >>> parts = [fingerprint64([b"x", b"y"]), fingerprint64([b"1", b"2"])]
        >>> (cross_fingerprints(parts) % 10).tolist()
        [5, 4]

    Source: `FingerprintCat64` of `tensorflow/core/platform/fingerprint.h`.
    """
    start = np.full(np.shape(parts[0]), word(DEFAULT_KEY if key is None else key), np.uint64)
    return reduce(_joined, parts, start)


def _joined(first: Words, second: Words) -> Words:
    factor = word(_FACTOR)
    mixed = ((first ^ factor) ^ (shift_mix(second * factor) * factor)) * factor
    return shift_mix(shift_mix(mixed) * factor)
