"""The checksums of TFRecord files: CRC-32C, rotated and shifted ("masked")."""

from __future__ import annotations

import functools

import numpy as np

#: The number of bytes before a record (its length and a checksum) and after it (its own checksum).
HEAD, FOOT = 12, 4
_DELTA = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78  # the reflected polynomial of CRC-32C


def masked_crc32c(data: bytes) -> int:
    """Returns the checksum that is stored after a length or a record.

    Example:
        >>> hex(masked_crc32c(b"123456789"))
        '0xc78ab0e5'

    Source: `tensorflow/core/lib/hash/crc32c.h`.
    """
    import google_crc32c

    crc = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + _DELTA) & 0xFFFFFFFF


def wrong_records(data: bytes, begins: np.ndarray, sizes: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Returns the numbers of the records whose masked checksum is not `stored`: int64."""
    import google_crc32c

    value = google_crc32c.value
    ends = (begins + sizes).tolist()
    own = [value(data[begin:end]) for begin, end in zip(begins.tolist(), ends, strict=True)]
    return np.flatnonzero(np.array(own, np.uint32) != _unmasked(stored))


def wrong_lengths(lengths: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Returns the indices of the lengths whose masked checksum is not `stored`: int64."""
    tables = _tables()
    words = lengths.astype(np.uint64)
    low = words ^ np.uint64(0xFFFFFFFF)  # the initial value of the checksum
    crc = np.zeros(len(lengths), np.uint32)
    for byte in range(8):
        crc ^= tables[7 - byte][((low >> np.uint64(8 * byte)) & np.uint64(0xFF)).astype(np.intp)]
    return np.flatnonzero((crc ^ np.uint32(0xFFFFFFFF)) != _unmasked(stored))


def _unmasked(stored: np.ndarray) -> np.ndarray:
    rotated = stored.astype(np.uint32) - np.uint32(_DELTA)
    return (rotated >> np.uint32(17)) | (rotated << np.uint32(15))


@functools.cache
def _tables() -> np.ndarray:
    """Returns uint32[8, 256]: the contribution of a byte that is followed by k further bytes."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    tables = [table]
    for _ in range(7):
        tables.append((tables[-1] >> np.uint32(8)) ^ table[tables[-1] & 0xFF])
    return np.stack(tables)
