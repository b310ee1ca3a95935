"""Decodes one feature of many tf.Example records: from the bytes of its Feature messages to a column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from estimator_inputs.reading.ragged import Column, Ragged, spread
from estimator_inputs.tfrecord.entries import FIRST
from estimator_inputs.tfrecord.spec import KINDS, FeatureSpec
from estimator_inputs.tfrecord.wire import Wire, byte_strings, lengths_at, packed_varints, varints_at

_NAME_OF_TAG = {tag: kind for kind, tag in KINDS.items()}


class Decoded(NamedTuple):
    """A column, and the rows without a value.

    Attributes:
        column: the values of all rows. The values of faulty and odd rows are arbitrary.
        odd: the numbers of broken rows, and of rows in a layout that only a general parser can read.
        faults: the faults of rows, by number.
    """

    column: Column
    odd: np.ndarray
    faults: dict[int, str]


class _Lists(NamedTuple):
    """The places of the values of a feature, from `begins` to `ends` for each of `rows`. Numbers exclude the packing
    header.
    """

    rows: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    odd: np.ndarray
    faults: dict[int, str]


def decode_column(wire: Wire, spec: FeatureSpec, begins: np.ndarray, ends: np.ndarray) -> Decoded:
    """Returns the column of one feature.

    Args:
        wire: the bytes of the records.
        spec: the expected feature.
        begins: the place where the Feature message of each row begins. It is negative for a row without a message.
        ends: the place where the message ends.
    """
    lists = _lists(wire, spec, begins, ends)
    odd, faults = [lists.odd], lists.faults
    values, counts, broken = _values(wire, spec, lists)
    odd.append(lists.rows[broken])
    if broken.any():
        return Decoded(np.empty(0), np.concatenate(odd), faults)
    values = _narrowed(spec, values, counts, lists.rows, faults)
    total = np.zeros(len(begins), np.int64)
    total[lists.rows] = counts
    lacking = np.ones(len(begins), bool)
    lacking[lists.rows] = False
    lacking[lists.odd] = False
    if spec.default is None and spec.form != "varlen" and lacking.any():
        for row in np.flatnonzero(lacking).tolist():
            told = "has no default value" if spec.form == "fixed" else "allow_missing is not set"
            faults.setdefault(row, f"is missing and {told}")
    if spec.form == "fixed":
        column = _fixed(spec, values, total, lists.rows, lacking, faults)
    else:
        column = _variable(spec, values, total, faults)
    return Decoded(column, np.concatenate(odd), faults)


def _lists(wire: Wire, spec: FeatureSpec, begins: np.ndarray, ends: np.ndarray) -> _Lists:
    faults: dict[int, str] = {}
    rows = np.flatnonzero((begins >= 0) & (ends > begins))
    begin, end = begins[rows], ends[rows]
    tag = wire.octets[begin]
    size, width = lengths_at(wire, begin + 1)
    inner = begin + 1 + width
    good = (inner + size == end) & ((tag == KINDS["bytes_list"]) | (tag == 0x12) | (tag == 0x1A))
    other = good & (tag != KINDS[spec.kind])
    odd = rows[~good]
    if other.any():
        for row, found in zip(rows[other].tolist(), tag[other].tolist(), strict=True):
            faults[row] = f"is of kind {_NAME_OF_TAG[found]}, not {spec.kind}"
        good &= ~other
    if not good.all():
        rows, inner, end = rows[good], inner[good], end[good]
    if spec.kind == "bytes_list":
        return _Lists(rows, inner, end, odd, faults)
    empty = inner == end
    size, width = lengths_at(wire, inner + 1)
    packed = inner + 1 + width
    whole = empty | ((wire.octets[inner] == FIRST) & (packed + size == end))
    packed = np.where(empty, end, packed)
    if not whole.all():
        odd = np.concatenate([odd, rows[~whole]])
        rows, packed, end = rows[whole], packed[whole], end[whole]
    return _Lists(rows, packed, end, odd, faults)


def _values(wire: Wire, spec: FeatureSpec, lists: _Lists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns all values of the lists, the length of each list, and which lists are broken."""
    sizes = lists.ends - lists.begins
    if spec.kind == "float_list":
        broken = (sizes & 3) != 0
        if broken.any():
            return np.empty(0, np.float32), sizes, broken
        if sizes.size and (sizes == sizes[0]).all() and sizes[0]:
            return wire.fixed(lists.begins, int(sizes[0])).reshape(-1).view("<f4"), sizes >> 2, broken
        where = spread(lists.begins >> 0, sizes)
        return wire.octets[where].view("<f4"), sizes >> 2, broken
    if spec.kind == "int64_list":
        return _integers(wire, lists, sizes)
    return _strings(wire, lists)


def _integers(wire: Wire, lists: _Lists, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values, widths = varints_at(wire, lists.begins)
    if np.array_equal(widths, sizes):  # one number in every list, the usual case
        return values, np.ones(len(sizes), np.int64), np.zeros(len(sizes), bool)
    values, counts, whole = packed_varints(wire, lists.begins, lists.ends)
    return values, counts, ~whole


def _strings(wire: Wire, lists: _Lists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the items of bytes lists. All lists are walked in lockstep."""
    counts = np.zeros(len(lists.rows), np.int64)
    broken = np.zeros(len(lists.rows), bool)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    row = np.flatnonzero(lists.ends > lists.begins)
    at, end = lists.begins[row], lists.ends[row]
    while row.size:
        size, width = lengths_at(wire, at + 1)
        begin = at + 1 + width
        stop = begin + size
        good = (wire.octets[at] == FIRST) & (stop <= end)
        if not good.all():
            broken[row[~good]] = True
            row, begin, stop, end = row[good], begin[good], stop[good], end[good]
        counts[row] += 1
        found.append((row, begin, stop))
        more = stop < end
        row, at, end = row[more], stop[more], end[more]
    if broken.any() or not found:
        return np.empty(0, object), counts, broken
    if len(found) == 1:
        return byte_strings(wire, *found[0][1:]), counts, broken
    rows, begins, stops = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(rows, kind="stable")
    return byte_strings(wire, begins[order], stops[order]), counts, broken


def _narrowed(
    spec: FeatureSpec, values: np.ndarray, counts: np.ndarray, rows: np.ndarray, faults: dict[int, str]
) -> np.ndarray:
    """Returns the values in the requested dtype. Integers out of its range are faults."""
    if values.dtype == spec.dtype:
        return values
    if spec.kind == "int64_list":
        low, high = (0, 1) if spec.dtype.kind == "b" else (np.iinfo(spec.dtype).min, np.iinfo(spec.dtype).max)
        outside = (values < low) | (values > min(high, np.iinfo(np.int64).max))
        if outside.any():
            owner = np.repeat(rows, counts)
            for place in np.flatnonzero(outside).tolist():
                text = f"has the value {values[place]}, which is outside the range of {spec.dtype}"
                faults.setdefault(int(owner[place]), text)
    return values.astype(spec.dtype)


def _fixed(
    spec: FeatureSpec,
    values: np.ndarray,
    counts: np.ndarray,
    rows: np.ndarray,
    lacking: np.ndarray,
    faults: dict[int, str],
) -> np.ndarray:
    size, total = spec.size, len(counts)
    wrong = counts[rows] != size
    if wrong.any():
        for row in rows[wrong].tolist():
            faults.setdefault(row, f"has {counts[row]} values, but must have {size}")
        values = values[np.repeat(~wrong, counts[rows])]
        rows = rows[~wrong]
    if len(rows) == total:
        return values.reshape(total, *spec.shape)
    column = np.empty((total, size), spec.dtype)
    column[rows] = values.reshape(len(rows), size)
    if spec.default is not None:
        column[lacking] = spec.default
    return column.reshape(total, *spec.shape)


def _variable(spec: FeatureSpec, values: np.ndarray, counts: np.ndarray, faults: dict[int, str]) -> Ragged:
    size = max(spec.size, 1)
    wrong = np.flatnonzero(counts % size)
    if wrong.size:
        for row in wrong.tolist():
            faults.setdefault(row, f"has {counts[row]} values, which is not a multiple of {size}")
        keep = counts % size == 0
        values = values[np.repeat(keep, counts)]
        counts = np.where(keep, counts, 0)
    return Ragged(values=values.reshape(-1, *spec.shape), lengths=counts // size, fill=spec.fill)
