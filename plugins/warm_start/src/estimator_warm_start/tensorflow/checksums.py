"""CRC-32C in the form that TensorFlow stores: rotated and shifted ("masked")."""

from __future__ import annotations

_DELTA = 0xA282EAD8


def masked_crc32c(data: bytes) -> int:
    """Returns the checksum that TensorFlow stores for some bytes.

    Args:
        data: the bytes.

    Example:
        >>> hex(masked_crc32c(b"123456789"))
        '0xc78ab0e5'

    Source: `tensorflow/core/lib/hash/crc32c.h`.
    """
    import google_crc32c

    value = google_crc32c.value(data)
    return (((value >> 15) | (value << 17)) + _DELTA) & 0xFFFFFFFF
