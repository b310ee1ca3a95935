"""Reads the wire format of protocol buffers for many messages at once with numpy.

Handling single bytes in Python takes longer than handling whole columns in numpy. Each function here therefore takes
the positions of one element in all records of a block, and returns its values in all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from estimator_inputs.reading.ragged import spread

#: The number of bytes after the last record, so that eight bytes can be read from any position of the record.
_PAD = 24
_SEVEN_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_CONTINUED = np.uint64(0x8080808080808080)
_ONE = np.uint64(1)


class Wire(NamedTuple):
    """A byte string in three views.

    Attributes:
        data: the bytes, with padding at the end.
        octets: uint8, the bytes as numbers.
        words: uint64, the eight bytes that begin at each position.
    """

    data: bytes
    octets: np.ndarray
    words: np.ndarray

    @classmethod
    def of(cls, data: bytes) -> Wire:
        """Returns the views of `data`."""
        padded = data + bytes(_PAD)
        octets = np.frombuffer(padded, np.uint8)
        # indexing overlapping words reads eight bytes in the time of one
        return cls(padded, octets, np.ndarray((len(padded) - 7,), "<u8", padded, 0, (1,)))

    def fixed(self, positions: np.ndarray, size: int) -> np.ndarray:
        """Returns `size` bytes from each position: uint8[n, size]."""
        if not positions.size:
            return np.empty((0, size), np.uint8)
        items = np.ndarray((len(self.data) - size + 1,), f"V{size}", self.data, 0, (1,))
        return items[positions].view(np.uint8).reshape(len(positions), size)


def lengths_at(wire: Wire, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the varints at positions as int64 lengths: (value, number of bytes). Over 8 bytes, the value is huge."""
    first = wire.octets[positions]
    if not (first & 0x80).any():
        return first.astype(np.int64), np.ones(len(positions), np.int64)
    words = wire.words[positions]
    width = _width(words)
    value = _compact(words, width).astype(np.int64)
    value[width > 8] = np.iinfo(np.int64).max // 4
    return value, width


def varints_at(wire: Wire, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the 64-bit varints at positions: (int64 value, number of bytes)."""
    words = wire.words[positions]
    width = _width(words)
    value = _compact(words, width)
    long = np.flatnonzero(width > 8)
    if long.size:
        where = positions[long]
        ninth, tenth = (wire.octets[where + offset].astype(np.uint64) for offset in (8, 9))
        more = ninth >= 0x80
        high = (ninth & np.uint64(0x7F)) << np.uint64(56)
        value[long] |= high | np.where(more, tenth << np.uint64(63), np.uint64(0))
        width[long] = np.where(more, np.where(tenth >= 0x80, 99, 10), 9)
    return value.view(np.int64), width


def packed_varints(wire: Wire, begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns all varints of ranges of bytes: (int64 values, count in each range, whether each range is complete)."""
    sizes = ends - begins
    where = spread(begins, sizes)
    last = wire.octets[where] < 0x80
    after = np.concatenate([[0], np.cumsum(last)])
    borders = np.cumsum(sizes)
    counts = after[borders] - after[borders - sizes]
    whole = np.ones(len(begins), bool)
    filled = sizes > 0
    whole[filled] = last[borders[filled] - 1]
    if not whole.all():
        return np.empty(0, np.int64), counts, whole
    stops = np.flatnonzero(last)
    starts = np.concatenate([[0], stops[:-1] + 1]) if stops.size else stops
    values, widths = varints_at(wire, where[starts])
    if not np.array_equal(widths, stops - starts + 1):  # more than ten bytes
        whole[np.searchsorted(borders, starts[widths != stops - starts + 1], side="right")] = False
    return values, counts, whole


def byte_strings(wire: Wire, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Returns ranges of bytes as bytes objects: object[n]."""
    import pyarrow as pa

    offsets = np.empty(2 * len(begins), np.int32)
    offsets[::2], offsets[1::2] = begins, ends
    found = np.empty(len(begins), object)
    if len(begins) == 0:
        return found
    if (offsets[1:] < offsets[:-1]).any():  # the ranges are not in the order of the buffer
        data = wire.data
        found[:] = [data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        return found
    # the ranges are every second item of an array over the whole buffer; the bytes between two ranges are items too
    items = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(wire.data)])
    return items.take(pa.array(np.arange(0, len(offsets), 2))).to_numpy(zero_copy_only=False)


def _width(words: np.ndarray) -> np.ndarray:
    """Returns the number of bytes of the varint at the start of each word, or 9 if it continues after the word."""
    stop = ~words & _CONTINUED
    lowest = stop & (~stop + _ONE)
    width = (np.bitwise_count(lowest - _ONE).astype(np.int64) + 1) >> 3
    width[stop == 0] = 9
    return width


def _compact(words: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Joins the seven-bit groups of the first `width` bytes."""
    unused = np.maximum(64 - 8 * width, 0).astype(np.uint64)
    x = (words << unused) >> unused
    x &= _SEVEN_BITS
    x = (x & np.uint64(0x007F007F007F007F)) | ((x & np.uint64(0x7F007F007F007F00)) >> _ONE)
    x = (x & np.uint64(0x00003FFF00003FFF)) | ((x & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    return (x & np.uint64(0x000000000FFFFFFF)) | ((x & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
