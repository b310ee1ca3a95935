"""Tests of strict JSON: text that is read in slices has the values that `json` reads, or is refused in both."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_exporters.serving import json_text
from estimator_exporters.serving.datatypes import from_json, json_nested, json_values
from estimator_exporters.serving.json_text import read_json
from estimator_exporters.serving.refusals import BadRequestError, TooLargeError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=30,
)


@pytest.fixture
def sliced(monkeypatch):
    monkeypatch.setattr(json_text, "_SMALL", -1)


def in_slices(text):
    before = json_text._SMALL
    json_text._SMALL = -1
    try:
        return read_json(text)
    finally:
        json_text._SMALL = before


@settings(max_examples=300, deadline=None)
@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_slices_give_what_json_gives(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    if b"\\ud" in text and ascii_only:
        return  # half a pair is refused, see its own test
    assert in_slices(text) == json.loads(text)


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet='[]{}",:0123456789.-eE tnull\\', max_size=40))
def test_slices_refuse_what_json_refuses(text):
    try:
        expected = json.loads(text, parse_constant=lambda literal: pytest.fail(literal))
    except ValueError:
        with pytest.raises(BadRequestError, match="is not JSON"):
            in_slices(text.encode())
        return
    assert in_slices(text.encode()) == expected


@pytest.mark.parametrize(
    "text", [b"[1,]", b"[,1]", b"[1,,2]", b"[ , ]", b"[1 2]", b"[", b"[1", b'{"a":1,}', b"[] []", b'["a" "b"]', b""]
)
def test_broken_lists_are_refused_in_slices(sliced, text):
    with pytest.raises(BadRequestError, match="is not JSON"):
        read_json(text)


def test_long_lists_are_cut_at_commas(sliced):
    numbers = list(range(100_000))
    assert read_json(json.dumps({"a": numbers, "b": [["x", *numbers], []]}).encode()) == {
        "a": numbers,
        "b": [["x", *numbers], []],
    }


@pytest.mark.parametrize("small", [-1, 2**16])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'["\xed\xa0\x80"]', "is not UTF-8"),  # a surrogate in bytes
        (b'["\xff"]', "is not UTF-8"),
        ('["a"]'.encode("utf-16"), "is no"),
        (b'["\\ud800"]', "half a surrogate pair"),
        (b'{"\\udfff": 1}', "half a surrogate pair"),
        (b"[NaN]", "NaN is not a JSON value"),
        (b'{"a": [1, -Infinity]}', "-Infinity is not a JSON value"),
        (b"[" * 5000, "is not JSON"),
    ],
)
def test_what_is_not_strict_is_refused(monkeypatch, small, text, message):
    monkeypatch.setattr(json_text, "_SMALL", small)
    with pytest.raises(BadRequestError, match=message):
        read_json(text)


def test_whole_pairs_are_read():
    assert read_json(b'["\\ud83d\\ude00"]') == ["\U0001f600"]


def test_literals_are_read_where_they_are_allowed():
    found = read_json(b"[NaN, Infinity]", literals=True)
    assert np.isnan(found[0])
    assert found[1] == np.inf


def test_values_are_counted_and_memory_is_charged_before_it_is_taken(sliced):
    charged = []
    with pytest.raises(TooLargeError, match="more than 10 values"):
        read_json(b"[" + b"1," * 10 + b"1]", values=10, charge=charged.append)
    assert charged == []
    read_json(b"[1,2]", charge=charged.append)
    assert charged[0] > 2 * 24  # two numbers in Python


def test_floats_that_are_not_finite_are_strings_both_ways():
    array = np.array([[1.5, np.nan], [np.inf, -np.inf]], np.float32)
    assert json_values(array, "y") == '1.5,"NaN","Infinity","-Infinity"'
    assert json_nested(array, "y") == '[[1.5,"NaN"],["Infinity","-Infinity"]]'
    again = from_json("FP32", json.loads(f"[{json_values(array, 'y')}]"), (2, 2), "x")
    np.testing.assert_array_equal(again, array)
    with pytest.raises(BadRequestError, match="'nan' is not of type FP32"):
        from_json("FP32", ["nan"], (1,), "x")
    with pytest.raises(BadRequestError, match="'NaN' is not of type INT32"):
        from_json("INT32", ["NaN"], (1,), "x")


@pytest.mark.parametrize("value", [1e39, float("inf")])
def test_numbers_out_of_range_are_refused(value):
    """1e999 is valid JSON, and Python reads it as infinity."""
    with pytest.raises(BadRequestError, match="outside the range of FP32"):
        from_json("FP32", [value], (1,), "x")


@pytest.mark.parametrize("count", [5, 20_000])
def test_long_arrays_go_there_and_back(count):
    array = np.random.default_rng(0).normal(size=(count, 2)).astype(np.float32)
    array[-1, 0] = np.nan
    np.testing.assert_array_equal(from_json("FP32", json.loads(json_nested(array, "y")), array.shape, "x"), array)
    words = np.array([f"{n}".encode() for n in range(count)], object)
    found = from_json("BYTES", json.loads(f"[{json_values(words, 'y')}]"), (count,), "x")
    np.testing.assert_array_equal(found, words)
