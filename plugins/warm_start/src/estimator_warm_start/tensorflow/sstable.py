"""The table format of LevelDB, in which TensorFlow keeps the index of a checkpoint."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from estimator_core.errors import CheckpointCorruptError
from estimator_warm_start.tensorflow.checksums import masked_crc32c

_FOOTER, _MAGIC, _TRAILER = 48, 0xDB4775248B80FB57, 5


def read_table(data: bytes, where: str) -> dict[bytes, bytes]:
    """Returns all keys and values of a table.

    Args:
        data: the content of the file.
        where: the name of the file, for messages.

    Raises:
        CheckpointCorruptError: the data is not a table, or is torn or compressed.

    Source: doc/table_format.md of LevelDB.
    """
    try:
        if len(data) < _FOOTER or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
            raise CheckpointCorruptError(f"{where} is not an index of a TensorFlow checkpoint, or it is incomplete.")
        footer = data[-_FOOTER:]
        _, place = _handle(footer, 0)
        index, _ = _handle(footer, place)
        return {
            key: value
            for _, entry in _entries(_block(data, index, where))
            for key, value in _entries(_block(data, _handle(entry, 0)[0], where))
        }
    except (IndexError, struct.error) as error:
        raise CheckpointCorruptError(f"{where} is damaged: {error!r}. Copy it again.") from error


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Returns a number of variable length, and the position after it.

    Example:
        >>> varint(bytes([0xAC, 0x02]), 0)
        (300, 2)
    """
    result = shift = 0
    while True:
        byte = data[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, place
        shift += 7


def _handle(data: bytes, place: int) -> tuple[tuple[int, int], int]:
    offset, place = varint(data, place)
    size, place = varint(data, place)
    return (offset, size), place


def _block(data: bytes, handle: tuple[int, int], where: str) -> bytes:
    offset, size = handle
    whole = data[offset : offset + size + _TRAILER]
    if len(whole) < size + _TRAILER:
        raise CheckpointCorruptError(f"{where} ends in the middle of a block. Copy it again.")
    if whole[size]:
        raise CheckpointCorruptError(f"{where} is compressed (type {whole[size]}), which TensorFlow never does.")
    expected = struct.unpack("<I", whole[size + 1 :])[0]
    if masked_crc32c(whole[: size + 1]) != expected:
        raise CheckpointCorruptError(f"{where} is damaged: a block does not match its checksum. Copy it again.")
    return whole[:size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    restarts = struct.unpack("<I", block[-4:])[0]
    end = len(block) - 4 - 4 * restarts
    place, key = 0, b""
    while place < end:
        shared, place = varint(block, place)
        fresh, place = varint(block, place)
        length, place = varint(block, place)
        key = key[:shared] + block[place : place + fresh]
        place += fresh
        yield key, block[place : place + length]
        place += length
