"""Arithmetic of 64-bit words, a whole array at a time: it wraps, as in C."""

from __future__ import annotations

from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint64]]

K0 = 0xC3A5C85C97CB3127
K1 = 0xB492B66FBE98F273
K2 = 0x9AE16A3B2F90404F


def word(value: int) -> np.uint64:
    """A constant, wrapped to 64 bits."""
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


def rotate(words: Words, bits: int) -> Words:
    """Rotated to the right."""
    return (words >> word(bits)) | (words << word(64 - bits))


def shift_mix(words: Words) -> Words:
    """The upper bits mixed into the lower ones."""
    return words ^ (words >> word(47))


def hash_pair(left: Words, right: Words, factor: Any) -> Words:
    """`HashLen16` with a multiplier: two words to one."""
    mixed = shift_mix((left ^ right) * factor)
    return shift_mix((right ^ mixed) * factor) * factor


def fetch64(text: np.ndarray, start: int) -> Words:
    """Little-endian words that begin at byte `start` of each row, uint8[n, length]."""
    return np.ascontiguousarray(text[:, start : start + 8]).view("<u8")[:, 0]


def fetch32(text: np.ndarray, start: int) -> Words:
    """Little-endian halves of words, as words."""
    return np.ascontiguousarray(text[:, start : start + 4]).view("<u4")[:, 0].astype(np.uint64)
