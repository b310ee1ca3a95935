"""FarmHash Fingerprint64 of many byte strings: numpy computes all strings of one length together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from estimator_canned_tabular.hashing.long import hash_long
from estimator_canned_tabular.hashing.words import (
    K0,
    K1,
    K2,
    Words,
    fetch32,
    fetch64,
    hash_pair,
    rotate,
    shift_mix,
    word,
)


def fingerprint64(texts: Sequence[bytes]) -> Words:
    """Returns the Fingerprint64 of each byte string, uint64[n].

    Example:
        >>> (fingerprint64([b"a", b"b", b"hello", b"wide"]) % 10).tolist()
        [9, 2, 6, 7]

    Source: `farmhashna::Hash64` of google/farmhash, which TensorFlow calls Fingerprint64.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    found = np.empty(len(texts), np.uint64)
    if len(texts) and (lengths == lengths[0]).all():
        return _hash(np.frombuffer(b"".join(texts), np.uint8).reshape(len(texts), int(lengths[0])))
    for length in np.unique(lengths).tolist():
        (places,) = np.nonzero(lengths == length)
        joined = b"".join([texts[place] for place in places.tolist()])
        found[places] = _hash(np.frombuffer(joined, np.uint8).reshape(len(places), length))
    return found


def _hash(text: np.ndarray) -> Words:
    length = text.shape[1]
    if length <= 16:
        return _hash_up_to_16(text)
    if length <= 32:
        return _hash_17_to_32(text)
    return _hash_33_to_64(text) if length <= 64 else hash_long(text)


def _hash_up_to_16(text: np.ndarray) -> Words:
    count, length = text.shape
    factor = word(K2 + 2 * length)
    if length >= 8:
        a = fetch64(text, 0) + word(K2)
        b = fetch64(text, length - 8)
        return hash_pair(rotate(b, 37) * factor + a, (rotate(a, 25) + b) * factor, factor)
    if length >= 4:
        return hash_pair(word(length) + (fetch32(text, 0) << word(3)), fetch32(text, length - 4), factor)
    if length == 0:
        return np.full(count, K2, np.uint64)
    first, middle, last = (text[:, place].astype(np.uint64) for place in (0, length >> 1, length - 1))
    y = first + (middle << word(8))
    z = word(length) + (last << word(2))
    return shift_mix((y * word(K2)) ^ (z * word(K0))) * word(K2)


def _hash_17_to_32(text: np.ndarray) -> Words:
    length = text.shape[1]
    factor = word(K2 + 2 * length)
    a, b = fetch64(text, 0) * word(K1), fetch64(text, 8)
    c, d = fetch64(text, length - 8) * factor, fetch64(text, length - 16) * word(K2)
    return hash_pair(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + word(K2), 18) + c, factor)


def _hash_33_to_64(text: np.ndarray) -> Words:
    length = text.shape[1]
    factor = word(K2 + 2 * length)
    a, b = fetch64(text, 0) * word(K2), fetch64(text, 8)
    c, d = fetch64(text, length - 8) * factor, fetch64(text, length - 16) * word(K2)
    y = rotate(a + b, 43) + rotate(c, 30) + d
    z = hash_pair(y, a + rotate(b + word(K2), 18) + c, factor)
    e, f = fetch64(text, 16) * factor, fetch64(text, 24)
    g, h = (y + fetch64(text, length - 32)) * factor, (z + fetch64(text, length - 24)) * factor
    return hash_pair(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, factor)
