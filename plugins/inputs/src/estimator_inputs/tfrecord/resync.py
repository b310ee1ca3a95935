"""Finds the next record of a file after one with a damaged length."""

from __future__ import annotations

from typing import BinaryIO, NamedTuple

import numpy as np

from estimator_inputs.tfrecord.checksums import FOOT, HEAD, masked_crc32c, wrong_lengths

#: The longest possible record. The checksum is computed only for numbers whose three high bytes are zero.
_LONGEST = 1 << 40


class Rewound:
    """A stream that accepts bytes back. Reading continues with them.

    Args:
        stream: the stream to read.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._back = b""

    def read(self, size: int) -> bytes:
        """Returns this many bytes, or all remaining bytes."""
        found, self._back = self._back[:size], self._back[size:]
        return found if len(found) == size else found + self._stream.read(size - len(found))

    def give_back(self, data: bytes) -> None:
        """Puts bytes back. The next `read` begins with them."""
        self._back = data + self._back


class Next(NamedTuple):
    """The place where reading continues.

    Attributes:
        skipped: the number of skipped bytes.
        rest: the bytes from the next record on that were already read. Empty at the end of the file.
    """

    skipped: int
    rest: bytes


def next_record(stream: Rewound, data: bytes, block_bytes: int) -> Next:
    """Finds the next place with valid checksums of a length and its record. Other places match with a chance of 2**-64.

    Args:
        stream: the stream after `data`.
        data: the bytes that begin with the damaged record.
        block_bytes: the number of bytes that are read at once. Memory holds this many, or the longest record.
    """
    skipped, at, ended = 0, 1, False
    while True:
        at = _length_from(data, at)
        if at < 0:
            passed = max(len(data) - HEAD + 1, 0)  # no record begins at these bytes
            if ended:
                return Next(skipped + len(data), b"")
            skipped, data, at = skipped + passed, data[passed:], 0
            piece = stream.read(block_bytes)
            ended, data = not piece, data + piece
            continue
        end = at + HEAD + int.from_bytes(data[at : at + 8], "little")
        if end + FOOT > len(data) and not ended:
            wanted = end + FOOT - len(data)
            piece = stream.read(wanted)
            ended, data = len(piece) < wanted, data + piece
        whole = end + FOOT <= len(data)
        if whole and masked_crc32c(data[at + HEAD : end]) == int.from_bytes(data[end : end + FOOT], "little"):
            return Next(skipped + at, data[at:])
        at += 1


def _length_from(data: bytes, start: int) -> int:
    """Returns the first position from `start` on with a length and its checksum, or -1 if there is none."""
    count = len(data) - HEAD + 1
    if start >= count:
        return -1
    lengths = np.ndarray((count,), "<u8", data, 0, (1,))[start:]
    places = np.flatnonzero(lengths < _LONGEST)
    stored = np.ndarray((count,), "<u4", data, 8, (1,))[start:][places]
    right = np.ones(len(places), bool)
    right[wrong_lengths(lengths[places], stored)] = False
    found = np.flatnonzero(right)
    return start + int(places[found[0]]) if found.size else -1
