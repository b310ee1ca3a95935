"""Arithmetic of 64-bit words on whole arrays. It wraps, as in C."""

from __future__ import annotations

from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint64]]

K0 = 0xC3A5C85C97CB3127
K1 = 0xB492B66FBE98F273
K2 = 0x9AE16A3B2F90404F


def word(value: int) -> np.uint64:
    """Returns a constant, wrapped to 64 bits."""
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


def rotate(words: Words, bits: int) -> Words:
    """Rotates words to the right."""
    return (words >> word(bits)) | (words << word(64 - bits))


def shift_mix(words: Words) -> Words:
    """Mixes the upper bits into the lower ones."""
    return words ^ (words >> word(47))


def hash_pair(left: Words, right: Words, factor: Any) -> Words:
    """Combines two words to one: `HashLen16` with a multiplier."""
    mixed = shift_mix((left ^ right) * factor)
    return shift_mix((right ^ mixed) * factor) * factor


def fetch64(text: np.ndarray, start: int) -> Words:
    """Returns the little-endian 64-bit words that begin at byte `start` of each row, uint8[n, length]."""
    return np.ascontiguousarray(text[:, start : start + 8]).view("<u8")[:, 0]


def fetch32(text: np.ndarray, start: int) -> Words:
    """Returns the little-endian 32-bit words that begin at byte `start` of each row, as 64-bit words."""
    return np.ascontiguousarray(text[:, start : start + 4]).view("<u4")[:, 0].astype(np.uint64)
