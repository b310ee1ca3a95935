"""FarmHash of texts longer than 64 bytes: blocks of 64 bytes, then the last 64 bytes once more."""

from __future__ import annotations

import numpy as np

from estimator_canned_tabular.hashing.words import K0, K1, K2, Words, fetch64, hash_pair, rotate, shift_mix, word

_SEED = 81


def hash_long(text: np.ndarray) -> Words:
    """Returns the hash of uint8[n, length], length > 64."""
    count, length = text.shape
    zeros = np.zeros(count, np.uint64)
    v, w = (zeros, zeros), (zeros, zeros)
    x = zeros + word(_SEED * K2) + fetch64(text, 0)
    y = zeros + word(_SEED * K1 + 113)
    z = shift_mix(y * word(K2) + word(113)) * word(K2)
    for start in range(0, (length - 1) // 64 * 64, 64):
        x = rotate(x + y + v[0] + fetch64(text, start + 8), 37) * word(K1)
        y = rotate(y + v[1] + fetch64(text, start + 48), 42) * word(K1)
        x = x ^ w[1]
        y = y + v[0] + fetch64(text, start + 40)
        z = rotate(z + w[0], 33) * word(K1)
        v = _weak(text, start, v[1] * word(K1), x + w[0])
        w = _weak(text, start + 32, z + w[1], y + fetch64(text, start + 16))
        z, x = x, z
    factor = word(K1) + ((z & word(0xFF)) << word(1))
    last = length - 64
    w = (w[0] + word((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = rotate(x + y + v[0] + fetch64(text, last + 8), 37) * factor
    y = rotate(y + v[1] + fetch64(text, last + 48), 42) * factor
    x = x ^ (w[1] * word(9))
    y = y + v[0] * word(9) + fetch64(text, last + 40)
    z = rotate(z + w[0], 33) * factor
    v = _weak(text, last, v[1] * factor, x + w[0])
    w = _weak(text, last + 32, z + w[1], y + fetch64(text, last + 16))
    z, x = x, z
    left = hash_pair(v[0], w[0], factor) + shift_mix(y) * word(K0) + z
    return hash_pair(left, hash_pair(v[1], w[1], factor) + x, factor)


def _weak(text: np.ndarray, start: int, a: Words, b: Words) -> tuple[Words, Words]:
    """Returns two words, computed from 32 bytes and two seeds."""
    first, second, third, fourth = (fetch64(text, start + offset) for offset in (0, 8, 16, 24))
    a = a + first
    b = rotate(b + a + fourth, 21)
    before = a
    a = a + second + third
    return a + fourth, b + rotate(a, 44) + before
