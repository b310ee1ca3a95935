"""Finds the entries of the feature maps of many tf.Example records, in lockstep."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from estimator_inputs.tfrecord.wire import Wire, lengths_at

#: The tags of fields 1 and 2 with a length. 1: `Example.features`, `Features.feature`, the key of an entry. 2: its
#: value.
FIRST, SECOND = 0x0A, 0x12
_MIX = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))


class Entries(NamedTuple):
    """All entries of all records. They are not ordered by record.

    Attributes:
        rows: int64[m], the number of the record.
        key_begins, key_sizes: int64[m], the place and length of the key.
        begins, ends: int64[m], the place of the Feature message.
        odd: bool[n], whether a record is broken, or has a layout that only a general parser can read.
    """

    rows: np.ndarray
    key_begins: np.ndarray
    key_sizes: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    odd: np.ndarray


def find_entries(wire: Wire, begins: np.ndarray, ends: np.ndarray) -> Entries:
    """Returns the entries of records from `begins` to `ends`.

    All records are walked at once, entry by entry. This takes a few numpy calls per entry of the longest record.
    """
    octets = wire.octets
    filled = ends > begins
    size, width = lengths_at(wire, begins + 1)
    at = begins + 1 + width
    odd = filled & ((octets[begins] != FIRST) | (at + size != ends))
    rows = np.flatnonzero(filled & ~odd & (at < ends))
    at, end = at[rows], ends[rows]
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    while rows.size:
        size, width = lengths_at(wire, at + 1)
        inner = at + 1 + width
        stop = inner + size
        good = (octets[at] == FIRST) & (stop <= end)
        if not good.all():
            odd[rows[~good]] = True
            rows, inner, stop, end = rows[good], inner[good], stop[good], end[good]
        found.append((rows, inner, stop))
        more = stop < end
        if more.all():
            at = stop
        else:
            rows, at, end = rows[more], stop[more], end[more]
    if not found:
        nothing = np.empty(0, np.int64)
        return Entries(nothing, nothing, nothing, nothing, nothing, odd)
    rows, inner, stop = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return _taken_apart(wire, rows, inner, stop, odd)


def _taken_apart(wire: Wire, rows: np.ndarray, inner: np.ndarray, stop: np.ndarray, odd: np.ndarray) -> Entries:
    octets = wire.octets
    key_size, width = lengths_at(wire, inner + 1)
    key = inner + 1 + width
    key_end = key + key_size
    good = (octets[inner] == FIRST) & (key_end <= stop)
    key_end = np.where(good, key_end, stop)
    size, width = lengths_at(wire, key_end + 1)
    begin = key_end + 1 + width
    good &= (key_end == stop) | ((octets[key_end] == SECOND) & (begin + size == stop))
    if not good.all():
        odd[rows[~good]] = True
        rows, key, key_size, begin, stop = (array[good] for array in (rows, key, key_size, begin, stop))
    return Entries(rows, key, key_size, np.minimum(begin, stop), stop, odd)


def which_key(wire: Wire, entries: Entries, names: list[str]) -> np.ndarray:
    """Returns for each entry the index of its key in `names`, or len(names) for other keys: int64[m]."""
    encoded = [name.encode() for name in names]
    own = Wire.of(b"".join(encoded))
    sizes = np.array([len(name) for name in encoded], np.int64)
    wanted = _fingerprints(own, np.cumsum(sizes) - sizes, sizes, int(sizes.max()))
    order = np.argsort(wanted)
    ordered = wanted[order]
    given = _fingerprints(wire, entries.key_begins, entries.key_sizes, int(sizes.max()))
    place = np.minimum(np.searchsorted(ordered, given), len(names) - 1)
    index = np.where(ordered[place] == given, order[place], len(names))
    for number in np.flatnonzero(sizes > 16):  # the fingerprint is certain only for shorter keys
        where = np.flatnonzero(index == number)
        whole = np.frombuffer(encoded[number], np.uint8)
        index[where[(wire.fixed(entries.key_begins[where], len(whole)) != whole).any(1)]] = len(names)
    return index


def _fingerprints(wire: Wire, begins: np.ndarray, sizes: np.ndarray, longest: int) -> np.ndarray:
    """Returns uint64: a mix of length and bytes. Keys of up to 16 bytes use their first and last eight bytes."""
    unused = (64 - 8 * np.minimum(sizes, 8)).astype(np.uint64)
    head = wire.words[begins]
    head = np.where(sizes == 0, np.uint64(0), (head << unused) >> unused)
    tail = np.where(sizes <= 8, np.uint64(0), wire.words[begins + np.maximum(sizes - 8, 0)])
    mixed = (head * _MIX[0]) ^ _stirred(tail) ^ (sizes.astype(np.uint64) * _MIX[2])
    for offset in range(8, longest - 8, 8):
        inside = sizes > offset + 8
        middle = wire.words[np.where(inside, begins + offset, 0)]
        mixed = np.where(inside, _stirred(mixed + middle), mixed)
    return mixed


def _stirred(words: np.ndarray) -> np.ndarray:
    words = (words ^ (words >> np.uint64(29))) * _MIX[1]
    return words ^ (words >> np.uint64(32))
