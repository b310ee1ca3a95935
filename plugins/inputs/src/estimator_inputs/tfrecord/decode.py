"""Decodes many serialized tf.Example records at once into columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_core.export import example_class
from estimator_inputs.reading.ragged import Column, Columns, take
from estimator_inputs.tfrecord.columns import decode_column
from estimator_inputs.tfrecord.entries import find_entries, which_key
from estimator_inputs.tfrecord.spec import FeatureSpec
from estimator_inputs.tfrecord.wire import Wire

#: The fault of a record: (feature, text), or (None, an object whose `str` is the text).
Fault = tuple[str | None, object]


def decode_examples(
    data: bytes,
    begins: np.ndarray,
    sizes: np.ndarray,
    specs: Mapping[str, FeatureSpec],
    faulty: Mapping[int, Fault] | None = None,
) -> tuple[Columns, dict[int, Fault]]:
    """Decodes the features of records in `data`.

    Args:
        data: the bytes that contain the records.
        begins: int64[n], the place where each record begins.
        sizes: int64[n], the length of each record.
        specs: the wanted features. Others are skipped.
        faulty: the known faults of records, which are left out.

    Returns:
        The columns of the good records, in order, and the faults of the others, by record.
    """
    columns, odd, faults = _attempt(data, begins, sizes, specs)
    if odd.any():
        # Writers do not produce this layout, but protobuf allows it. protobuf rewrites it in the usual layout.
        data, begins, sizes, broken = _rewritten(data, begins, sizes, np.flatnonzero(odd).tolist())
        columns, odd, faults = _attempt(data, begins, sizes, specs)
        assert not odd.any(), "protobuf wrote a tf.Example that cannot be read"
        faults.update(broken)
    faults.update(faulty or {})
    if faults:
        good = np.ones(len(begins), bool)
        good[list(faults)] = False
        columns = take(columns, np.flatnonzero(good))
    return columns, dict(sorted(faults.items()))


def _attempt(
    data: bytes, begins: np.ndarray, sizes: np.ndarray, specs: Mapping[str, FeatureSpec]
) -> tuple[Columns, np.ndarray, dict[int, Fault]]:
    wire = Wire.of(data)
    entries = find_entries(wire, begins, begins + sizes)
    odd = entries.odd
    names = list(specs)
    keys = which_key(wire, entries, names) if len(entries.rows) else np.empty(0, np.int64)
    columns: dict[str, Column] = {}
    faults: dict[int, Fault] = {}
    for number, (name, spec) in enumerate(specs.items()):
        found = np.flatnonzero(keys == number)
        begin = np.full(len(begins), -1, np.int64)
        end = begin.copy()
        rows = entries.rows[found]
        begin[rows], end[rows] = entries.begins[found], entries.ends[found]  # the last entry with a name counts
        decoded = decode_column(wire, spec, begin, end)
        columns[name] = decoded.column
        odd[decoded.odd] = True
        for row, text in decoded.faults.items():
            faults.setdefault(row, (name, text))
        if spec.vocabulary is not None:
            for row, unknown in spec.vocabulary.unknown(decoded.column, f"feature {name!r} has the "):
                faults.setdefault(row, (None, unknown))
    return columns, odd, faults


def _rewritten(
    data: bytes, begins: np.ndarray, sizes: np.ndarray, rows: list[int]
) -> tuple[bytes, np.ndarray, np.ndarray, dict[int, Fault]]:
    """Returns the data with the records of `rows` rewritten by protobuf and appended."""
    from google.protobuf.message import DecodeError

    message: Any = example_class()
    begins, sizes = begins.copy(), sizes.copy()
    parts, at, broken = [data], len(data), dict[int, Fault]()
    for row in rows:
        begin = int(begins[row])
        try:
            example = message.FromString(data[begin : begin + int(sizes[row])])
        except DecodeError as error:
            broken[row], usual = (None, f"not a serialized tf.Example: {error}"), b""
        else:
            example.DiscardUnknownFields()
            usual = example.SerializeToString(deterministic=True)
        begins[row], sizes[row] = at, len(usual)
        parts.append(usual)
        at += len(usual)
    return b"".join(parts), begins, sizes, broken
