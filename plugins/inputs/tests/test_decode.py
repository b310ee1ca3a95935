"""Tests of the decoder of tf.Examples against protobuf itself, on records of any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_core import export
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_inputs.reading.ragged import Ragged
from estimator_inputs.tfrecord.decode import decode_examples
from estimator_inputs.tfrecord.spec import feature_specs

NAMES = ["a", "bb", "", "feature_number_0001_of_it", "feature_number_0002_of_it", "x" * 130, "na\u00efve"]
KINDS = {"int64_list": "int64", "float_list": "float32", "bytes_list": "string"}
int64 = st.integers(-(2**63), 2**63 - 1)
values_of = {
    "int64_list": int64 | st.integers(-3, 300),
    "float_list": st.floats(width=32),
    "bytes_list": st.binary(max_size=5) | st.binary(min_size=120, max_size=140),
}


@st.composite
def features(draw: st.DrawFn) -> dict[str, tuple[str, list[Any]]]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=len(NAMES)))
    found = {}
    for name in names:
        kind = draw(st.sampled_from(list(KINDS)))
        found[name] = (kind, draw(st.lists(values_of[kind], max_size=4)))
    return found


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def listed(kind: str, values: list[Any], *, packed: bool) -> bytes:
    if kind == "bytes_list":
        return b"".join(field(1, value) for value in values)
    if kind == "int64_list":
        single = [varint(value) for value in values]
        return (field(1, b"".join(single)) if values else b"") if packed else b"".join(b"\x08" + v for v in single)
    raw = np.array(values, "<f4").tobytes()
    if packed:
        return field(1, raw) if values else b""
    return b"".join(b"\x0d" + raw[4 * i : 4 * i + 4] for i in range(len(values)))


def record(
    found: dict[str, tuple[str, list[Any]]], *, packed: bool, extra: bytes = b"", value_first: bool = False
) -> bytes:
    tags = {"bytes_list": 1, "float_list": 2, "int64_list": 3}
    entries = []
    for name, (kind, values) in found.items():
        parts = [field(1, name.encode()), field(2, field(tags[kind], listed(kind, values, packed=packed)))]
        entries.append(field(1, b"".join(parts[::-1] if value_first else parts)))
    return field(1, b"".join(entries) + extra)


def decoded(records: list[bytes], specs: Any) -> tuple[Any, Any]:
    """Decodes records that have other bytes before, between and after them."""
    pad, begins, data = b"\x0a\xff\x80", [], b""
    for one in records:
        data += pad
        begins.append(len(data))
        data += one
    sizes = np.array([len(one) for one in records], np.int64)
    return decode_examples(data, np.array(begins, np.int64), sizes, feature_specs(specs))


def by_protobuf(one: bytes, name: str, kind: str) -> list[Any] | None:
    """The values, or None if the feature is of another kind. A missing feature has no values."""
    message = export.example_class()()
    message.ParseFromString(one)
    if name not in message.features.feature:
        return []
    found = message.features.feature[name]
    if found.WhichOneof("kind") not in (None, kind):
        return None
    return list(getattr(found, kind).value)


def same(one: list[Any], other: list[Any], kind: str) -> bool:
    if kind == "float_list":
        return np.array(one, "<f4").tobytes() == np.array(other, "<f4").tobytes()
    return one == other


@settings(max_examples=150)
@given(
    st.lists(st.tuples(features(), st.booleans(), st.booleans()), max_size=6),
    st.sampled_from(NAMES),
    st.sampled_from(list(KINDS)),
    st.booleans(),
)
def test_values_are_those_of_protobuf(
    drawn: list[tuple[dict[str, tuple[str, list[Any]]], bool, bool]], name: str, kind: str, unknown: bool
) -> None:
    extra = field(9, b"unknown") if unknown else b""
    records = [record(found, packed=packed, extra=extra, value_first=first) for found, packed, first in drawn]
    columns, faults = decoded(records, {name: export.VarLenFeature(KINDS[kind])})
    column = columns[name]
    assert isinstance(column, Ragged)
    expected = [by_protobuf(one, name, kind) for one in records]
    assert list(faults) == [row for row, values in enumerate(expected) if values is None]
    good = [values for values in expected if values is not None]
    assert column.lengths.tolist() == [len(values) for values in good]
    at = 0
    for values in good:
        assert same(column.values[at : at + len(values)].tolist(), values, kind)
        at += len(values)


@settings(max_examples=300)
@given(st.binary(max_size=60), st.integers(0, 3))
def test_bytes_of_any_kind_are_read_as_protobuf_reads_them(noise: bytes, place: int) -> None:
    usual = record({"a": ("int64_list", [5]), "bb": ("bytes_list", [b"x"])}, packed=True)
    records = [usual, usual[: len(usual) // (place + 1)] + noise, usual]
    columns, faults = decoded(records, {"a": export.VarLenFeature("int64")})
    try:
        expected = by_protobuf(records[1], "a", "int64_list")
    except Exception:  # DecodeError, whose module depends on the backend
        expected = None
    assert (1 in faults) == (expected is None)
    rows = [[5], *([] if expected is None else [expected]), [5]]
    assert columns["a"].lengths.tolist() == [len(row) for row in rows]
    assert columns["a"].values.tolist() == [value for row in rows for value in row]


@pytest.mark.parametrize("packed", [True, False])
def test_shapes_defaults_and_dtypes(packed: bool) -> None:
    rows = [
        {"m": ("float_list", [1.0, 2, 3, 4]), "n": ("int64_list", [-1]), "s": ("bytes_list", [b"u", b"v"])},
        {"m": ("float_list", [5.0, 6, 7, 8]), "s": ("bytes_list", [b"w", b"w"]), "q": ("float_list", [1.0, 2, 3, 4])},
        {"n": ("int64_list", [300])},
    ]
    spec = {
        "m": export.FixedLenFeature((2, 2), "float64", default_value=0.5),
        "n": export.FixedLenFeature((), np.int16, default_value=7),
        "s": export.FixedLenFeature((2,), "string", default_value=["x", b"y"]),
        "q": export.FixedLenSequenceFeature((2,), "float32", default_value=-1.0),
    }
    columns, faults = decoded([record(row, packed=packed) for row in rows], spec)
    assert faults == {}
    assert columns["m"].tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[0.5, 0.5], [0.5, 0.5]]]
    assert (columns["m"].dtype, columns["n"].dtype) == (np.float64, np.int16)
    assert columns["n"].tolist() == [-1, 7, 300]
    assert columns["s"].tolist() == [[b"u", b"v"], [b"w", b"w"], [b"x", b"y"]]
    assert columns["q"].dense().tolist() == [[[-1, -1], [-1, -1]], [[1, 2], [3, 4]], [[-1, -1], [-1, -1]]]


def test_the_last_entry_of_a_name_counts() -> None:
    twice = field(
        1, record({"a": ("int64_list", [1])}, packed=True)[2:] + record({"a": ("int64_list", [2])}, packed=True)[2:]
    )
    columns, faults = decoded([twice], {"a": export.FixedLenFeature((), "int64")})
    assert (columns["a"].tolist(), faults) == ([2], {})


def test_sequences_must_be_whole_and_may_have_to_be_there() -> None:
    spec = {"q": export.FixedLenSequenceFeature((2,), "int64", allow_missing=False)}
    rows = [{"q": ("int64_list", [1, 2])}, {"q": ("int64_list", [1, 2, 3])}, {}]
    columns, faults = decoded([record(row, packed=True) for row in rows], spec)
    assert columns["q"].values.tolist() == [[1, 2]]
    assert faults == {
        1: ("q", "has 3 values, which is not a multiple of 2"),
        2: ("q", "is missing and allow_missing is not set"),
    }


@pytest.mark.parametrize(
    ("spec", "error", "text"),
    [
        ({}, ArgumentTypeError, "features must be a dict"),
        ({"x": "float32"}, ArgumentTypeError, r"features\['x'\] must be an ec.export.FixedLenFeature"),
        ({"x": export.FixedLenFeature((None,))}, ArgumentError, "all sizes must be fixed"),
        ({"x": export.FixedLenFeature((), "complex64")}, ArgumentTypeError, "holds int64, float and bytes"),
        ({"x": export.FixedLenFeature((), "nonsense")}, ArgumentTypeError, "is not a dtype"),
        ({"x": export.FixedLenFeature((2,), "int64", [1, 2, 3])}, ArgumentError, "the default value"),
        ({"x": export.FixedLenFeature((), "string", 5.5)}, ArgumentError, "the default value"),
    ],
)
def test_specifications_that_cannot_be(spec: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        feature_specs(spec)
