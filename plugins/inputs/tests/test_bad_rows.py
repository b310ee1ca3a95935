"""Bad rows: the error names the file, the line or record, and the column. Skipped rows are counted and reported."""

import bz2
import gzip
import json
import logging
import lzma
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from estimator_core import export
from estimator_core.errors import InputError
from estimator_inputs import (
    csv_input_fn,
    jsonl_input_fn,
    learn_schema,
    parquet_input_fn,
    tfrecord_input_fn,
    write_tfrecord,
)
from plugins.inputs.tests.written import SPEC, example, row_dicts, some_rows, write_examples, write_parquet

GOOD = 60


def lines_with(bad: bytes, at: int, line: Callable[[int], bytes], head: bytes = b"") -> bytes:
    """Good lines with a bad one among them."""
    lines = [line(number) for number in range(GOOD)]
    return head + b"".join([*lines[:at], bad, *lines[at:]])


def csv_line(number: int) -> bytes:
    return b"%d,%d.5,w%d\n" % (number, number, number)


TYPES = {"id": "int64", "weight": "float32", "word": "string"}
BAD_CSV = {
    "wrong type": (b"x1,2.5,w\n", "column 'id': 'x1' is not of type int64"),
    "wrong type in the last number": (b"1,2.5.5,w\n", "column 'weight': '2.5.5' is not of type float32"),
    "out of range": (b"99999999999999999999,2.5,w\n", "column 'id': '99999999999999999999' is not of type int64"),
    "no value": (b",2.5,w\n", "column 'id': no value, and no default (column_defaults)"),
    "extra delimiter": (b"1,2.5,w,\n", "4 fields, more than the 3 columns (id, weight, word)"),
    "too few": (b"1,2.5\n", "2 fields, fewer than the 3 columns (id, weight, word)"),
    "too many, and no UTF-8": (b"1,2.5,w,\xff\n", "4 fields, more than the 3 columns (id, weight, word)"),
    "too few, and no UTF-8": (b"1,\xff\n", "2 fields, fewer than the 3 columns (id, weight, word)"),
    "bad UTF-8": (b"1,2.5,w\xff\n", "column 'word': 'w\\xff' is not valid UTF-8"),
    "quote in a field": (b'1,2.5,5" pipe\n', "a quote inside a field that does not begin with one"),
    "quote behind a field": (b'1,2.5,"a"b\n', "a quote is not closed"),
    "quote not closed": (b'1,2.5,"w\n', "a quote is not closed before the file ends"),
}


@pytest.mark.parametrize("case", list(BAD_CSV))
@pytest.mark.parametrize("at", [0, 31, GOOD])
@pytest.mark.parametrize("block_bytes", [64, 1 << 19])
def test_csv(tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str, at: int, block_bytes: int) -> None:
    bad, text = BAD_CSV[case]
    path = tmp_path / "rows.csv"
    path.write_bytes(lines_with(bad, at, csv_line, b"id,weight,word\n"))
    options: dict[str, Any] = {"shuffle": False, "column_types": TYPES, "block_bytes": block_bytes}
    with pytest.raises(InputError) as raised:
        list(csv_input_fn(path, 7, **options)())
    assert str(raised.value).startswith(f"{path}, line {at + 2}: {text}. ")
    iterator = csv_input_fn(path, 7, **options, on_error="skip")()
    with caplog.at_level(logging.WARNING, logger="estimator_inputs"):
        batches = list(iterator)
    assert np.concatenate([batch["id"] for batch in batches]).tolist() == list(range(GOOD))
    assert iterator.bad_rows == 1
    assert caplog.messages == [
        f"Skipped {path}, line {at + 2}: {text}.",
        f"Skipped 1 bad rows in epoch 0 and read {GOOD} good ones.",
    ]


@pytest.mark.parametrize("shuffle", [False, True])
def test_epochs_and_evaluations_log_the_same_bad_rows_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, shuffle: bool
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"id\n" + b"".join(b"x\n" if number % 4 == 3 else b"%d\n" % number for number in range(40)))
    types: dict[str, Any] = {"column_types": {"id": "int64"}, "on_error": "skip"}
    source = csv_input_fn(path, 7, shuffle=shuffle, num_epochs=3, **types)
    with caplog.at_level(logging.WARNING, logger="estimator_inputs"):
        iterators = [source(), source()]
        for iterator in iterators:
            assert sum(len(batch["id"]) for batch in iterator) == 90
    assert [iterator.bad_rows for iterator in iterators] == [30, 30]
    assert caplog.messages == [
        *(f"Skipped {path}, line {line}: column 'id': 'x' is not of type int64." for line in (5, 9, 13, 17, 21)),
        "Skipped 10 bad rows in epoch 0 and read 30 good ones.",
    ]


def test_lines_are_counted_through_quoted_newlines_and_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'id,weight,word\n1,1,"a\nb\n""c"\n\n2,2,d\r\n\n3,x,e\n4,,f\n')
    iterator = csv_input_fn(path, 9, shuffle=False, column_types=TYPES, on_error="skip")()
    with pytest.raises(InputError, match=r"line 8: column 'weight': 'x'"):
        list(csv_input_fn(path, 9, shuffle=False, column_types=TYPES)())
    (batch,) = iterator
    assert batch["word"].tolist() == [b'a\nb\n"c', b"d"]
    assert iterator.bad_rows == 2


@pytest.mark.slow
def test_bad_rows_are_counted_once_when_resumed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"id\n" + b"".join(b"x\n" if number % 7 == 3 else b"%d\n" % number for number in range(200)))
    options: dict[str, Any] = {"column_types": {"id": "int64"}, "on_error": "skip", "num_epochs": 2, "block_bytes": 64}
    for shuffle in (False, True):
        source = csv_input_fn(path, 10, shuffle=shuffle, shuffle_buffer_size=23, **options)
        whole = source()
        expected = [batch["id"].tolist() for batch in whole]
        assert whole.bad_rows == 2 * sum(number % 7 == 3 for number in range(200))
        for stop in (1, 9, 17, 20, len(expected) - 1):
            first = source()
            for _ in range(stop):
                next(first)
            second = source()
            second.set_state(first.get_state())
            assert [batch["id"].tolist() for batch in second] == expected[stop:]
            assert second.bad_rows == whole.bad_rows


def test_a_missing_column_is_an_error_even_where_rows_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,weight\n1,2\n")
    (tmp_path / "b.csv").write_text("weight,other\n1,2\n")
    source = csv_input_fn(f"{tmp_path}/*.csv", 9, shuffle=False, on_error="skip")
    with pytest.raises(InputError, match=r"b\.csv, line 1: column 'id' is missing. Its columns are: weight, other"):
        list(source())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_the_first_file_lacks_is_an_error_unless_columns_are_selected(tmp_path: Path, kind: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet
    from pyarrow import csv

    write = csv.write_csv if kind == "csv" else pa.parquet.write_table
    write(pa.table({"id": [1], "weight": [2]}), tmp_path / f"a.{kind}")
    write(pa.table({"weight": [3], "more": [4], "id": [5]}), tmp_path / f"b.{kind}")
    make = csv_input_fn if kind == "csv" else parquet_input_fn
    pattern = f"{tmp_path}/*.{kind}"
    with pytest.raises(InputError, match=rf"b\.{kind}.*: column 'more' is not in .*a\.{kind}, whose columns are"):
        list(make(pattern, 9, shuffle=False, on_error="skip")())
    (batch,) = make(pattern, 9, shuffle=False, select_columns=["id", "weight"])()
    assert {name: column.tolist() for name, column in batch.items()} == {"id": [1, 5], "weight": [2, 3]}


def test_two_columns_of_parquet_with_one_name(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table([[1], [2], [3]], names=["id", "id", "weight"]), path)
    with pytest.raises(InputError, match=r"rows\.parquet: two columns are named 'id'\. Rename one\."):
        list(parquet_input_fn(path, 1, shuffle=False)())
    (batch,) = parquet_input_fn(path, 1, shuffle=False, select_columns=["weight"])()
    assert batch["weight"].tolist() == [3]


@pytest.mark.parametrize("bad", [b"1,2.5,w,\xff\n", b"\xff\n", b"1,\xff\xff,w\n", b"1,2,3\n" * 5 + b"1,2\n"])
def test_bad_rows_among_the_first_tell_no_types(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(lines_with(bad, 3, csv_line, b"id,weight,word\n"))
    found = csv_input_fn(path, 200, shuffle=False, on_error="skip", select_columns=["id", "weight"])
    (batch,) = found()
    assert (batch["id"].dtype, batch["weight"].dtype) == (np.int64, np.float32)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": 1}\n' + bad + b'{"id": 2}\n')
    (batch,) = jsonl_input_fn(path, 9, shuffle=False, on_error="skip")()
    assert batch["id"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[{"x": 1}, {"x": 2}]', r"it holds a JSON array, .* jq -c '\.\[\]' FILE"),
        ('[\n {\n "x": 1\n }\n]\n', r"it holds a JSON array, .* jq -c '\.\[\]' FILE"),
        ('\n[\n{"x": 1},\n{"x": 2}\n]', r"it holds a JSON array, .* jq -c '\.\[\]' FILE"),
        ('{\n "x": 1\n}\n{\n "x": 2\n}\n', r"each of its JSON objects has several lines\. .* jq -c \. FILE"),
        ('{"x": 1},\n{"x": 2},\n', "it has commas between JSON objects"),
        ("\nx,y\n1,2\n", "it does not hold JSON lines: line 2 is 'x,y'"),
        ("[1, 2]\n[3, 4]\n", r"it does not hold JSON lines: line 1 is '\[1, 2\]'"),
    ],
)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_files_that_are_not_json_lines_are_told_as_what_they_are(
    tmp_path: Path, text: str, told: str, on_error: Any
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"rows\.jsonl: {told}"):
        jsonl_input_fn(path, 7, shuffle=False, on_error=on_error)


@pytest.mark.parametrize("other", ['"w"', '{"a": [1]}', "[2]", "true"])
def test_keys_that_nobody_reads_may_hold_anything(tmp_path: Path, other: str) -> None:
    """This includes keys whose type is named. Their values need not have the type."""
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"x": 1.5, "m": 1}}\n{{"x": 2, "m": {other}}}\n')
    (batch,) = jsonl_input_fn(path, 9, shuffle=False, select_columns=["x"])()
    assert (batch["x"].tolist(), batch["x"].dtype) == ([1.5, 2.0], np.float32)
    told = r"rows\.jsonl: the lines that determine .*Write all values of 'm' with one type\. A program can also set"
    with pytest.raises(InputError, match=told):
        jsonl_input_fn(path, 9, shuffle=False)
    named = jsonl_input_fn(path, 9, shuffle=False, column_types={"m": "int64"}, on_error="skip")
    assert [batch["x"].tolist() for batch in named()] == [[1.5]], "of equally frequent types, the first one counts"


def test_numbers_that_json_does_not_have_are_read_as_they_are_written(tmp_path: Path) -> None:
    """The server, `estimator predict` and protobuf do the same. A column of words keeps its word NaN."""
    path = tmp_path / "rows.jsonl"
    rows = [{"x": 0.5, "l": [1.5, "NaN"], "w": "NaN"}, {"x": "-Infinity", "l": ["Infinity"], "w": "é"}, {"x": "NaN"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    types = {"x": "float32", "l": "float32"}
    for options in ({}, {"column_types": types}):
        (batch,) = jsonl_input_fn(path, 9, shuffle=False, **options)()
        np.testing.assert_array_equal(batch["x"], np.array([0.5, -np.inf, np.nan], np.float32))
        np.testing.assert_array_equal(batch["l"], np.array([[1.5, np.nan], [np.inf, 0], [0, 0]], np.float32))
        assert batch["w"].tolist() == [b"NaN", "é".encode(), b""]
    path.write_text('{"x": 1}\n{"x": "NaN"}\n')
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2: column 'x': 'NaN' is not of type int64"):
        list(jsonl_input_fn(path, 9, shuffle=False, column_types={"x": "int64"})())


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"x": 1, "x": 2, "y": "a"}', "the key 'x' occurs twice"),
        ('{"x": "NaN", "x": 2, "y": "a"}', "the key 'x' occurs twice"),
        ('{"x": 1, "y": {"z": 1}}', r"column 'y': a JSON object cannot be a feature\. Leave .* \(select_columns\)"),
    ],
)
def test_a_json_line_without_one_value_for_each_column(tmp_path: Path, line: str, fault: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"x": 1.5, "y": "b"}}\n{line}\n')
    types = {"x": "float32", "y": "string"}
    with pytest.raises(InputError, match=rf"rows\.jsonl, line 2: {fault}"):
        list(jsonl_input_fn(path, 9, shuffle=False, column_types=types)())
    (batch,) = jsonl_input_fn(path, 9, shuffle=False, column_types=types, on_error="skip")()
    assert batch["x"].tolist() == [1.5]


def test_a_number_beyond_float64_stays_a_fault_beside_nan_in_quotes(tmp_path: Path) -> None:
    """The line was rewritten because of its NaN, and then contained Infinity."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"x": 1.5, "y": 1}\n{"x": "NaN", "y": 1e400}\n{"x": "NaN", "y": -Infinity}\n')
    types = {"x": "float32", "y": "float32"}
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2: .*1e400 is infinite as float64"):
        list(jsonl_input_fn(path, 9, shuffle=False, column_types=types)())
    (batch,) = jsonl_input_fn(path, 9, shuffle=False, column_types=types, on_error="skip")()
    np.testing.assert_array_equal(batch["y"], np.array([1, -np.inf], np.float32))


def test_words_that_read_nan_cost_no_second_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's json also read each line with the word, which took six times as long."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"x": {n}.5, "w": "NaN"}}\n' for n in range(5)))
    read = jsonl_input_fn(path, 9, shuffle=False)
    monkeypatch.setattr(json, "loads", lambda *given, **options: pytest.fail("a line is read by Python"))
    (batch,) = read()
    assert batch["w"].tolist() == [b"NaN"] * 5


def test_a_column_of_nan_in_quotes_alone_holds_words_whatever_other_keys_hold(tmp_path: Path) -> None:
    """A row without the key made them numbers if another key had values of several types."""
    path = tmp_path / "rows.jsonl"
    for other in ("1", '"w"'):
        path.write_text(f'{{"w": "NaN", "m": 1}}\n{{"m": {other}}}\n')
        (batch,) = jsonl_input_fn(path, 9, shuffle=False, select_columns=["w"])()
        assert batch["w"].tolist() == [b"NaN", b""]


def test_keys_that_most_rows_lack_cost_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key was looked up in all rows. This took 12 s for the first lines of a file with a bad line."""
    path = tmp_path / "rows.jsonl"
    path.write_text("no JSON\n" + "".join(f'{{"x": 1, "f{n}": 0.5}}\n' for n in range(300)))
    written: list[int] = []
    dumps = json.dumps
    monkeypatch.setattr(json, "dumps", lambda *given, **options: written.append(1) or dumps(*given, **options))
    read = jsonl_input_fn(path, 400, shuffle=False, select_columns=["x", "f7"], on_error="skip", column_defaults=[0, 0])
    assert len(written) == 301
    (batch,) = read()
    assert batch["f7"].tolist() == [0.5 if n == 7 else 0 for n in range(300)]


def test_a_line_with_half_a_surrogate_pair_is_a_bad_row_also_among_the_first_lines(tmp_path: Path) -> None:
    """The error said that the values have several types, and asked to skip lines also if they were skipped."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"w": "\\ud83d", "x": 1}\n{"w": "\\ud83d\\ude00", "x": 2}\n')
    with pytest.raises(InputError, match=r"rows\.jsonl, line 1: .*surrogate pair in string is invalid"):
        list(jsonl_input_fn(path, 9, shuffle=False)())
    (batch,) = jsonl_input_fn(path, 9, shuffle=False, on_error="skip")()
    assert [batch["w"].tolist(), batch["x"].tolist()] == [["\U0001f600".encode()], [2]]


def test_a_block_of_empty_lists_does_not_end_the_process(tmp_path: Path) -> None:
    """Arrow searched an empty array for infinite numbers, and crashed."""
    (tmp_path / "a.jsonl").write_text('{"x": [1.5]}\n')
    (tmp_path / "b.jsonl").write_text('{"x": []}\n{"x": []}\n')
    (batch,) = jsonl_input_fn(f"{tmp_path}/*.jsonl", 9, shuffle=False)()
    assert batch["x"].tolist() == [[1.5], [0.0], [0.0]]


BAD_JSON = {
    "wrong type": (b'{"id": "x", "weight": 1}\n', "column 'id': 'x' is not of type int64"),
    "no number": (b'{"weight": 1}\n', "column 'id': no value, and no default (column_defaults)"),
    "not JSON": (b'{"id": 1, "weight"\n', "not JSON: "),
    "no object": (b"[1, 2]\n", "not a JSON object: '[1, 2]'"),
    "bad UTF-8": (b'{"id": 1, "weight": 1, "word": "\xff"}\n', "not valid UTF-8: "),
}


@pytest.mark.parametrize("case", list(BAD_JSON))
@pytest.mark.parametrize("at", [0, 31])
def test_jsonl(tmp_path: Path, case: str, at: int) -> None:
    bad, text = BAD_JSON[case]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(lines_with(bad, at, lambda n: b'{"id": %d, "weight": %d.5, "word": "w"}\n' % (n, n)))
    (tmp_path / "head.jsonl").write_text('{"id": 1, "weight": 1.5, "word": "w"}\n')
    files = [tmp_path / "head.jsonl", path]
    with pytest.raises(InputError) as raised:
        list(jsonl_input_fn(files, 7, shuffle=False)())
    assert str(raised.value).startswith(f"{path}, line {at + 1}: {text}")
    iterator = jsonl_input_fn(files, 7, shuffle=False, on_error="skip")()
    assert np.concatenate([batch["id"] for batch in iterator]).tolist() == [1, *range(GOOD)]
    assert iterator.bad_rows == 1


@pytest.mark.parametrize(("numbers", "bad"), [([1, 0, 2, None], "2"), ([1.0, 0.0, math.nan, None], "nan")])
def test_a_number_that_is_no_truth_value_is_a_bad_row(tmp_path: Path, numbers: list[float | None], bad: str) -> None:
    """Arrow casts NaN to true."""
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"x": numbers}), path)
    given: dict[str, Any] = {"column_types": {"x": "bool"}, "column_defaults": {"x": True}, "select_columns": ["x"]}
    with pytest.raises(InputError, match=rf"rows\.parquet, row 2: column 'x': {bad} is not of type bool\."):
        list(parquet_input_fn(path, 4, shuffle=False, **given)())
    (batch,) = parquet_input_fn(path, 4, shuffle=False, on_error="skip", **given)()
    assert batch["x"].tolist() == [True, False, True]


def test_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"id": pa.array([1, 2, None, 4]), "word": ["a", None, "c", "d"]}), path)
    with pytest.raises(InputError, match=r"rows\.parquet, row 2: column 'id': no value, and no default"):
        list(parquet_input_fn(path, 3, shuffle=False)())
    iterator = parquet_input_fn(path, 3, shuffle=False, on_error="skip")()
    (batch,) = iterator
    assert batch["id"].tolist() == [1, 2, 4]
    assert batch["word"].tolist() == [b"a", b"", b"d"]
    assert iterator.bad_rows == 1
    (batch,) = parquet_input_fn(path, 4, shuffle=False, column_defaults={"id": -5})()
    assert batch["id"].tolist() == [1, 2, -5, 4]
    with pytest.raises(InputError, match=r"rows\.parquet, row 0: column 'word': 'a' is not of type float32"):
        list(parquet_input_fn(path, 3, shuffle=False, column_types={"word": "float32"})())
    write_parquet(tmp_path / "other.parquet", {"word": np.array([b"x"], object)})
    with pytest.raises(InputError, match=r"other\.parquet: column 'id' is missing"):
        list(parquet_input_fn([path, tmp_path / "other.parquet"], 3, shuffle=False, on_error="skip")())
    (tmp_path / "none.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(InputError, match=r"none\.parquet: its footer cannot be read as Parquet"):
        parquet_input_fn(tmp_path / "none.parquet", 3, shuffle=False)


def test_values_of_parquet_that_a_type_does_not_hold_are_bad_rows(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    table = {"id": ["1", "n/a", "3", None], "x": [1.0, 2.0, 3.5, 4.0], "few": [["1"], ["2"], ["3"], ["4"]]}
    pa.parquet.write_table(pa.table(table), path)
    types = {"id": "int32", "x": "int32", "few": "float32"}
    with pytest.raises(InputError, match=r"rows\.parquet, row 1: column 'id': 'n/a' is not of type int32\. Correct"):
        list(parquet_input_fn(path, 3, shuffle=False, column_types=types)())
    for defaults, kept in ((None, [1]), ({"id": -5}, [1, -5])):
        iterator = parquet_input_fn(
            path, 3, shuffle=False, column_types=types, column_defaults=defaults, on_error="skip"
        )()
        (batch,) = iterator
        assert batch["id"].tolist() == kept
        assert iterator.bad_rows == 4 - len(kept)


@pytest.mark.parametrize("wrong", [{0}, {50}, {3, 4, 99}])
def test_a_bad_item_of_a_list_of_parquet_makes_its_own_row_bad(tmp_path: Path, wrong: set[int]) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    lists = [["n/a" if row in wrong else "1", "2"] for row in range(100)]
    pa.parquet.write_table(pa.table({"id": range(100), "x": lists}), path)
    types = {"x": "float32"}
    iterator = parquet_input_fn(path, 100, shuffle=False, column_types=types, on_error="skip")()
    (batch,) = iterator
    assert batch["id"].tolist() == [row for row in range(100) if row not in wrong]
    assert iterator.bad_rows == len(wrong)
    with pytest.raises(InputError, match=rf"row {min(wrong)}: column 'x': \['n/a', '2'\] is not of type"):
        list(parquet_input_fn(path, 100, shuffle=False, column_types=types)())


@pytest.mark.parametrize("column", [[{"a": 1}], [[[1], [2, 3]]], [[{"a": 1}]]], ids=["struct", "lists", "structs"])
def test_columns_of_parquet_that_are_no_arrays_are_left_out_or_refused(tmp_path: Path, column: list[object]) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"id": [1], "deep": column}), path)
    with pytest.raises(
        InputError, match=r"rows\.parquet: column 'deep' holds .*: select other columns \(select_columns, --k"
    ):
        list(parquet_input_fn(path, 1, shuffle=False, on_error="skip")())
    assert learn_schema(str(path)).feature("deep").kind in ("other", "number")
    (batch,) = parquet_input_fn(path, 1, shuffle=False, select_columns=["id"])()
    assert batch["id"].tolist() == [1]


def test_a_missing_list_of_one_size_in_parquet_is_not_called_damage(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"x": pa.array([[1, 2], None], pa.list_(pa.int32(), 2))}), path)
    unread = (
        "A list of fixed size has no value: write the column as lists of variable size"  # pyarrow 25 cannot read it
    )
    with pytest.raises(InputError, match=f"{unread}|row 1: column 'x': no value"):
        list(parquet_input_fn(path, 1, shuffle=False)())


BAD_EXAMPLES = {
    "lacks a feature": ({"count": None}, "feature 'count' is missing and has no default value"),
    "another kind": ({"count": 1.5}, "feature 'count' is of kind float_list, not int64_list"),
    "another number": ({"count": np.array([1, 2])}, "feature 'count' has 2 values, but must have 1"),
}


@pytest.mark.parametrize("case", list(BAD_EXAMPLES))
def test_examples(tmp_path: Path, case: str) -> None:
    change, text = BAD_EXAMPLES[case]
    rows = row_dicts(some_rows(GOOD))
    rows.insert(31, {name: value for name, value in {**rows[0], **change}.items() if value is not None})
    records_raise_or_skip(tmp_path, [example(row) for row in rows], 31, text)


def test_a_record_that_is_no_example(tmp_path: Path) -> None:
    records = [example(row) for row in row_dicts(some_rows(GOOD))]
    records.insert(5, b"\xffno example")
    records_raise_or_skip(tmp_path, records, 5, "not a serialized tf.Example")


def records_raise_or_skip(folder: Path, records: list[bytes], bad: int, text: str) -> None:
    path = folder / "rows.tfrecord"
    write_tfrecord(path, records)
    with pytest.raises(InputError) as raised:
        list(tfrecord_input_fn(path, 7, SPEC, shuffle=False, block_bytes=500)())
    assert str(raised.value).startswith(f"{path}, record {bad}: {text}")
    iterator = tfrecord_input_fn(path, 7, SPEC, shuffle=False, on_error="skip")()
    assert np.concatenate([batch["id"] for batch in iterator]).tolist() == list(range(GOOD))
    assert iterator.bad_rows == 1


def read_ids(path: Path, **options: Any) -> tuple[list[int], int]:
    iterator = tfrecord_input_fn(path, 7, SPEC, shuffle=False, on_error="skip", **options)()
    return [number for batch in iterator for number in batch["id"].tolist()], iterator.bad_rows


def test_a_tfrecord_cut_off_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    whole = write_examples(path, some_rows(4)).read_bytes()
    ends = [0]
    for _ in range(4):
        ends.append(ends[-1] + 16 + int.from_bytes(whole[ends[-1] : ends[-1] + 8], "little"))
    assert ends[-1] == len(whole)
    for size in range(ends[1], len(whole)):
        path.write_bytes(whole[:size])
        complete = sum(end <= size for end in ends) - 1
        source = tfrecord_input_fn(path, 7, SPEC, shuffle=False)
        if size in ends:
            assert sum(len(batch["id"]) for batch in source()) == complete
            continue
        with pytest.raises(
            InputError, match=rf"rows\.tfrecord, record {complete}: the file is truncated: it ends after"
        ):
            list(source())
        assert read_ids(path) == (list(range(complete)), 1)


def test_every_flipped_bit_of_a_tfrecord_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    whole = write_examples(path, some_rows(3)).read_bytes()
    first = 16 + int.from_bytes(whole[:8], "little")
    for place in range(first, 2 * first):  # the second record is about as long as the first
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"record [12]: the checksum of"):
            list(tfrecord_input_fn(path, 7, SPEC, shuffle=False)())
        found, bad = read_ids(path)
        assert bad == 1
        assert found in ([0, 1], [0, 2])  # only the damaged record is left out, even if its length is damaged


@pytest.mark.parametrize("size", [0, 10, 0.5, -1])
def test_a_damaged_compressed_file_is_named(tmp_path: Path, size: float) -> None:
    path = tmp_path / "rows.csv.gz"
    whole = gzip.compress(b"id\n" + b"".join(b"%d\n" % number for number in range(200_000)))
    cut = int(len(whole) * size) if isinstance(size, float) else size
    path.write_bytes(whole[:cut] if cut >= 0 else whole[:-1])
    with pytest.raises(
        InputError, match=r"rows\.csv\.gz (cannot be read as gzip after byte [\d,]+ of its content|is empty)"
    ):
        list(csv_input_fn(path, 50, shuffle=False)())


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst"])
def test_the_place_of_damage_in_a_compressed_file_is_told(tmp_path: Path, suffix: str) -> None:
    """The content before the named place was read, and the damage follows soon."""
    path = tmp_path / f"rows.csv.{suffix}"
    text = b"id\n" + b"".join(b"%d\n" % (number * 7919 % 1_000_003) for number in range(400_000))
    compress = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}[suffix]
    whole = compress(text)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cannot be read as \w+ after byte [\d,]+ of its content: ") as raised:
        list(csv_input_fn(path, 50_000, shuffle=False, block_bytes=1 << 16)())
    place = int(re.findall(r"after byte ([\d,]+) of", str(raised.value))[0].replace(",", ""))
    assert 0.2 * len(text) < place < 0.6 * len(text)


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def test_a_file_without_good_rows_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id\nx\ny\n")
    with pytest.raises(InputError, match=r"^No rows in 1 files.*2 bad rows were skipped"):
        list(csv_input_fn(path, 5, shuffle=False, column_types={"id": "int64"}, on_error="skip", num_epochs=None)())


def test_narrow_dtypes_refuse_what_does_not_fit(tmp_path: Path) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", [example({"x": value}) for value in (1, 300, -1)])
    spec = {"x": export.FixedLenFeature((), "uint8")}
    with pytest.raises(
        InputError, match="record 1: feature 'x' has the value 300, which is outside the range of uint8"
    ):
        list(tfrecord_input_fn(tmp_path / "a.tfrecord", 3, spec, shuffle=False)())


@pytest.mark.parametrize(
    ("reader", "suffix", "text", "line"),
    [
        (csv_input_fn, "csv", "x\n" + "1\n" * 120 + "2.5\n", 122),
        (jsonl_input_fn, "jsonl", '{"x": 1}\n' * 40_000 + '{"x": 2.5}\n', 40_001),
    ],
)
def test_a_real_number_after_whole_ones_names_the_type_that_reads_it(
    tmp_path: Path, reader: Any, suffix: str, text: str, line: int
) -> None:
    """A user does not want to skip such a row. The advice of the message reads every row."""
    path = tmp_path / f"rows.{suffix}"
    path.write_text(text)
    told = rf"line {line}: column 'x': '2\.5' is not of type int64; .* read the column as 'float32' \(column_types\)\. "
    with pytest.raises(InputError, match=told):
        list(reader(str(path), 50_000, shuffle=False)())
    *_, last = reader(str(path), 50_000, shuffle=False, column_types={"x": "float32"})()
    assert last["x"][-1] == 2.5
