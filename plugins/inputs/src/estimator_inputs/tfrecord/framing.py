"""Divides TFRecord files into blocks of records. Each record is between its length and its checksum."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from estimator_inputs.tfrecord.checksums import FOOT, HEAD, masked_crc32c, wrong_lengths
from estimator_inputs.tfrecord.resync import Next, Rewound, next_record

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")


class Frames(NamedTuple):
    """The complete records of a piece of a file.

    Attributes:
        data: the bytes of the piece.
        begins, sizes: int64[n], the place and length of each record in the piece.
        offset: the offset of the piece in the (decompressed) file, in bytes.
        record: the number of the first record, from 0.
        after: the offset after the last record, or the offset where reading continues after a fault.
        fault: why the record after the last one cannot be read. None: the file continues or ends normally.
    """

    data: bytes
    begins: np.ndarray
    sizes: np.ndarray
    offset: int
    record: int
    after: int
    fault: str | None = None

    @property
    def next_record(self) -> int:
        """The number of the record at `after`. An unreadable record counts as one, even if more were lost."""
        return self.record + len(self.begins) + (self.fault is not None)

    def stored_checksums(self) -> np.ndarray:
        """Returns the masked checksum after each record: uint32[n]."""
        return _little_endian(self.data, self.begins + self.sizes)


@dataclass(frozen=True, kw_only=True)
class _Walk:
    begins: np.ndarray
    sizes: np.ndarray
    end: int
    lost: bool


def read_frames(
    stream: BinaryIO, *, block_bytes: int, offset: int = 0, record: int = 0, resync: bool = False
) -> Iterator[Frames]:
    """Yields the pieces of a stream at position `offset`, where record number `record` begins.

    The checksums of lengths are verified here, because the next record cannot be found without them. The checksums of
    records are verified when the records are decoded.

    Args:
        stream: the stream of a file.
        block_bytes: the size of a piece in bytes. A longer record is a piece of its own.
        offset: the position of the stream, in bytes.
        record: the number of the record at that position.
        resync: whether to continue after a length with a wrong checksum, at the next record with valid checksums.
    """
    source = Rewound(stream)
    rest, wanted = b"", block_bytes
    while True:
        piece = source.read(wanted)
        data = rest + piece
        if not data:
            return
        walk = _walk(data)
        if walk.lost:
            found = next_record(source, data[walk.end :], block_bytes) if resync else None
            begin, skipped = offset + walk.end, found.skipped if found else 0
            yield Frames(data, walk.begins, walk.sizes, offset, record, begin + skipped, _lost(begin, found))
            if found is None or not found.rest:
                return
            source.give_back(found.rest)
            record, offset = record + len(walk.begins) + 1, begin + skipped
            rest, wanted = b"", block_bytes
            continue
        fault = None if piece else _truncated(data, walk.end)
        if len(walk.begins) or fault:
            after = offset + (len(data) if fault else walk.end)
            yield Frames(data, walk.begins, walk.sizes, offset, record, after, fault)
        if fault:
            return
        record += len(walk.begins)
        offset += walk.end
        rest = data[walk.end :]
        # The content of a block depends only on its beginning, so a position can return to it.
        wanted = max(block_bytes - len(rest), _missing(rest), 1)


def write_tfrecord(path: str | Path, records: Iterable[bytes]) -> int:
    """Writes records into a TFRecord file, with checksums.

    Args:
        path: the path of the file, which is overwritten.
        records: the records, such as serialized tf.Examples.

    Returns:
        The number of records.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tfrecord(f"{folder}/two.tfrecord", [b"one", b"two"])
        2

    Source: `tf.io.TFRecordWriter`.
    """
    count = 0
    with open(os.path.expanduser(path), "wb") as file:
        for count, record in enumerate(records, start=1):  # noqa: B007
            length = _LENGTH.pack(len(record))
            head = length + _CHECKSUM.pack(masked_crc32c(length))
            file.write(head + record + _CHECKSUM.pack(masked_crc32c(record)))
    return count


def _walk(data: bytes) -> _Walk:
    begins: list[int] = []
    length_at, size, at = _LENGTH.unpack_from, len(data), 0
    last = size - HEAD - FOOT
    append = begins.append
    while at <= last:
        after = at + HEAD + FOOT + length_at(data, at)[0]
        if after > size:
            break
        append(at + HEAD)
        at = after
    found = np.array(begins, np.int64)
    sizes = np.diff(found, append=at + HEAD) - HEAD - FOOT
    wrong = wrong_lengths(sizes, _little_endian(data, found - FOOT)) if begins else found
    if wrong.size:
        first = int(wrong[0])
        at, found, sizes = int(found[first]) - HEAD, found[:first], sizes[:first]
    lost = bool(wrong.size) or (size - at >= HEAD and not _length_holds(data, at))
    return _Walk(begins=found, sizes=sizes, end=at, lost=lost)


def _lost(begin: int, found: Next | None) -> str:
    if found is None:
        return "the checksum of its length is wrong, so nothing after it can be found"
    behind = "the beginning of the next complete record" if found.rest else "the end of the file"
    return f"the checksum of its length is wrong: bytes {begin} to {begin + found.skipped} are left out, up to {behind}"


def _length_holds(data: bytes, at: int) -> bool:
    return masked_crc32c(data[at : at + 8]) == _CHECKSUM.unpack_from(data, at + 8)[0]


def _missing(rest: bytes) -> int:
    """Returns the number of bytes that an incomplete record lacks. Its length has been verified."""
    return HEAD + FOOT + _LENGTH.unpack_from(rest, 0)[0] - len(rest) if len(rest) >= HEAD else 0


def _truncated(data: bytes, end: int) -> str | None:
    left = len(data) - end
    if not left:
        return None
    if left < HEAD:
        return f"the file is truncated: it ends after {left} of the {HEAD} bytes of this record's header"
    size = _LENGTH.unpack_from(data, end)[0]
    return f"the file is truncated: it ends after {left - HEAD} of the {size + FOOT} bytes of this record"


def _little_endian(data: bytes, positions: np.ndarray) -> np.ndarray:
    if not positions.size:
        return np.empty(0, np.uint32)
    return np.ndarray((len(data) - 3,), "<u4", data, 0, (1,))[positions]
