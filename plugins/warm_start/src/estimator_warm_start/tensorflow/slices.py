"""The parts of a partitioned variable: their keys in the index, and their positions in the whole."""

from __future__ import annotations

import struct
from collections.abc import Sequence

WHOLE_AXIS = -1
# The masks of the first two bytes of a number, for each number of bytes from 2 on.
_HEADERS = ((0xC0, 0), (0xE0, 0), (0xF0, 0), (0xF8, 0), (0xFC, 0), (0xFE, 0), (0xFF, 0), (0xFF, 0x80), (0xFF, 0xC0))


def slice_key(name: str, extents: Sequence[tuple[int, int]]) -> bytes:
    """Returns the key of a part of a variable in the index.

    Args:
        name: the name of the variable.
        extents: the start and the length on each axis. A length of `WHOLE_AXIS` is the whole axis.

    Example:
        >>> slice_key("w", [(0, 2), (0, WHOLE_AXIS)]).hex()
        '0077000101028082807f'

    Source: EncodeTensorNameSlice of tensorflow/core/util/saved_tensor_slice_util.cc, lib/strings/ordered_code.cc.
    """
    text = name.encode().replace(b"\0", b"\0\xff").replace(b"\xff", b"\xff\0")
    numbers = b"".join(_signed(number) for extent in extents for number in extent)
    return _unsigned(0) + text + b"\0\1" + _unsigned(len(extents)) + numbers


def _unsigned(value: int) -> bytes:
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(digits)]) + digits


def _signed(value: int) -> bytes:
    size = value if value >= 0 else ~value
    if size < 64:
        return bytes([0x80 ^ (value & 0xFF)])
    length = size.bit_length() // 7 + 1
    whole = (b"\xff\xff" if value < 0 else b"\0\0") + struct.pack(">q", value)
    coded = bytearray(whole[len(whole) - length :])
    first, second = _HEADERS[length - 2]
    coded[0] ^= first
    coded[1] ^= second
    return bytes(coded)
