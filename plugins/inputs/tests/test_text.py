"""Tests of the chunks of text files, and of CSV against Python's csv module."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_inputs import csv_input_fn, jsonl_input_fn, learn_schema
from estimator_inputs.text.chunks import Chunk, Quoting, read_chunks
from estimator_inputs.text.quotes import quote_fault, record_ends

QUOTING = Quoting(b'"', b",")
cells = st.text(st.sampled_from('ab,"\n\u00e9 '), max_size=6)


def written(rows: list[list[str]], *, all_quoted: bool) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL).writerows(rows)
    return text.getvalue().encode()


def chunks_of(data: bytes, block_bytes: int, **place: int) -> list[Chunk]:
    stream = io.BytesIO(data[place.get("offset", 0) :])
    return list(read_chunks(stream, block_bytes=block_bytes, quoting=QUOTING, **place))


@settings(max_examples=200)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=20), st.integers(1, 40), st.booleans(), st.booleans())
def test_chunks_are_whole_records(rows: list[tuple[str, str]], block: int, all_quoted: bool, ended: bool) -> None:
    data = written([list(row) for row in rows], all_quoted=all_quoted)
    data = data if ended else data.removesuffix(b"\n")
    chunks = chunks_of(data, block)
    assert b"".join(chunk.data for chunk in chunks) == data
    assert [chunk.fault for chunk in chunks] == [None] * len(chunks)
    read = [tuple(row) for chunk in chunks for row in csv.reader(io.StringIO(chunk.data.decode(), newline=""))]
    assert read == rows
    assert len(record_ends(data, b'"')) == len(rows) - (not data.endswith(b"\n"))
    for number, chunk in enumerate(chunks[:-1]):
        rest = chunks_of(data, block, offset=chunk.after[0], line=chunk.after[1])
        assert rest == chunks[number + 1 :]


@settings(max_examples=200)
@given(st.text(st.sampled_from('ab,"\n'), max_size=40), st.integers(1, 30))
def test_chunks_of_anything(text: str, block: int) -> None:
    """No byte is lost, with any quotes. Reading continues correctly at every place, and good chunks are valid."""
    data = text.encode()
    chunks = chunks_of(data, block)
    assert b"".join(chunk.data for chunk in chunks) == data
    line = 1
    for number, chunk in enumerate(chunks):
        assert chunk.line == line
        line += chunk.data.count(b"\n")
        assert chunks_of(data, block, offset=chunk.after[0], line=chunk.after[1]) == chunks[number + 1 :]
        if chunk.fault is None:
            assert quote_fault(chunk.data, b'"', b",", ended=True) is None
            strict = csv.reader(io.StringIO(chunk.data.decode(), newline=""), strict=True)
            assert all(isinstance(row, list) for row in strict)
        else:
            assert chunk.data.count(b"\n") <= 1


def test_a_record_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    long = "x\n" * 5000
    path.write_text(f'id,word\n1,"{long}"\n2,b\n')
    (batch,) = csv_input_fn(path, 5, shuffle=False, block_bytes=64)()
    assert batch["word"].tolist() == [long.encode(), b"b"]


TABLE = "a,b,c,d,e\n1,0.5,true,x,\n2,7,false,,\n"


def read_table(tmp_path: Path, text: str = TABLE, **options: Any) -> dict[str, Any]:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    (batch,) = csv_input_fn(path, 10, shuffle=False, **options)()
    return batch


def test_types_are_inferred(tmp_path: Path) -> None:
    batch = read_table(tmp_path)
    assert {name: values.dtype.name for name, values in batch.items()} == {
        "a": "int64",
        "b": "float32",
        "c": "bool",
        "d": "object",
        "e": "object",
    }
    assert batch["c"].tolist() == [True, False]
    assert batch["d"].tolist() == [b"x", b""]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("empty.csv", ["x,y,z\n,2.5,\n"]),
        ("header.csv", ["x,y,z\n"]),
        ("both.csv", ["x,y,z\n", "x,y,z\n,,\n"]),
        ("null.jsonl", ['{"x": null, "y": 2.5, "z": []}\n']),
        ("nothing.jsonl", [""]),
        ("blank.jsonl", ["\n", '{"x": null, "y": null, "z": null}\n']),
    ],
)
def test_a_column_without_a_value_in_the_first_file_has_the_type_of_a_later_one(
    tmp_path: Path, name: str, others: list[str]
) -> None:
    listed = name.endswith(".jsonl")
    last = tmp_path / f"last_{name}"
    last.write_text('{"x": 5, "y": 1.5, "z": [2]}\n' if listed else "x,y,z\n5,1.5,2\n")
    files = [tmp_path / f"{place}_{name}" for place in range(len(others))]
    for path, text in zip(files, others, strict=True):
        path.write_text(text)
    make = jsonl_input_fn if listed else csv_input_fn
    for order in ([*files, last], [last, *files]):
        types = make(order, 9, shuffle=False).kind.schema.types
        found = {column: kind.name for column, kind in types.items()}
        assert found == {"x": "int64", "y": "float32", "z": "list of int64" if listed else "int64"}
        schema = learn_schema(order)
        assert [schema.feature(column).dtype for column in "xyz"] == ["int64", "float32", "int64"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("bad", [False, True])
def test_a_column_without_a_value_in_the_first_rows_has_the_type_of_the_later_ones(
    tmp_path: Path, kind: str, bad: bool
) -> None:
    """The column was read as strings, and a number was a word."""
    path, n = tmp_path / f"rows.{kind}", 30_000
    last = [("5", "1.5"), ("-7", "2")]
    lines = [f"{row},," for row in range(n)] + [f"{row},{x},{y}" for row, (x, y) in enumerate(last, n)]
    if kind == "jsonl":
        filler = '"x": null, "y": null, "more": "a longer line"'
        lines = [f'{{"id": {row}, {filler}}}' for row in range(n)]
        lines += [f'{{"id": {row}, "x": {x}, "y": {y}}}' for row, (x, y) in enumerate(last, n)]
    header = ["id,x,y"] if kind == "csv" else []
    path.write_text("\n".join([*header, *lines[: n // 2], *(["bad"] if bad else []), *lines[n // 2 :]]))
    make = csv_input_fn if kind == "csv" else jsonl_input_fn
    options: dict[str, Any] = {"shuffle": False, "on_error": "skip" if bad else "raise"}
    source = make(path, n + 3, select_columns=["id", "x", "y"], column_defaults={"x": 0, "y": 0}, **options)
    (batch,) = source()
    assert {name: values.dtype.name for name, values in batch.items()} == {"id": "int64", "x": "int64", "y": "float32"}
    assert (batch["x"].tolist(), batch["y"].tolist()) == ([0] * n + [5, -7], [0] * n + [1.5, 2])
    schema = learn_schema(path)
    assert [schema.feature(name).dtype for name in "xy"] == ["int64", "float32"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_first_value_of_a_column_is_searched_in_a_mebibyte_of_a_later_file(tmp_path: Path, kind: str) -> None:
    """A column that is always empty is searched in every file, and there may be many files."""
    filler = "x" * 1000
    head, empty, last = "x,y\n", f"{filler},\n", f"{filler},5\n"
    if kind == "jsonl":
        head, empty, last = "", f'{{"x": "{filler}", "y": null}}\n', f'{{"x": "{filler}", "y": 5}}\n'
    paths = [tmp_path / f"{name}.{kind}" for name in ("none", "late")]
    paths[0].write_text(head + empty)
    paths[1].write_text(head + empty * 3000 + last)
    make = csv_input_fn if kind == "csv" else jsonl_input_fn
    assert make(paths[1], 1, shuffle=False).kind.schema.types["y"].name == "int64"
    assert make(paths, 1, shuffle=False).kind.schema.types["y"].name == "string"
    paths[1].write_text(head + empty * 900 + last)
    assert make(paths, 1, shuffle=False).kind.schema.types["y"].name == "int64"


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("values", "name", "kept"),
    [
        ([1, "a", 2.5, "Infinity"], "float32", [1, 2.5, np.inf]),
        (["a", 1, "b"], "string", [b"a", b"b"]),
        ([[1], 2, [3]], "list of int64", [[1], [3]]),
        ([True, 1, False], "bool", [True, False]),
    ],
)
def test_with_skip_the_most_frequent_type_of_a_key_counts(
    tmp_path: Path, values: list[Any], name: str, kept: list[Any], late: bool
) -> None:
    """A line of another type is a bad row wherever it is. In the lines that determine the types, it was an error."""
    path = tmp_path / "rows.jsonl"
    before = '{"x": null, "more": "a line without a value, beyond which the search goes on"}\n' * (5000 if late else 0)
    path.write_text(before + "".join(json.dumps({"x": value}) + "\n" for value in values))
    source = jsonl_input_fn(path, 9, shuffle=False, select_columns=["x"], on_error="skip")
    assert source.kind.schema.types["x"].name == name
    rows = [row for batch in source() for row in batch["x"].tolist()]
    assert rows[-len(kept) :] == kept
    assert late or len(rows) == len(kept)
    with pytest.raises(InputError, match="are not JSON objects of the same types"):
        jsonl_input_fn(path, 9, shuffle=False, select_columns=["x"])


def test_a_bad_row_of_a_later_file_is_skipped_though_a_column_has_no_type_yet(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"x": null, "y": 1}\n')
    (tmp_path / "b.jsonl").write_text('{"x": 5, "y": 2}\n{"x": 6, "y": "bad"}\n')
    (batch,) = jsonl_input_fn(tmp_path / "*.jsonl", 9, shuffle=False, on_error="skip", column_defaults={"x": 0})()
    assert (batch["x"].tolist(), batch["y"].tolist()) == ([0, 5], [1, 2])


def test_files_without_a_row_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x,y\n")
    with pytest.raises(InputError, match=r"a\.csv has no rows\.$"):
        csv_input_fn(tmp_path / "a.csv", 1, shuffle=False)
    with pytest.raises(InputError, match=r"a\.csv has no rows, nor has any other file\."):
        csv_input_fn(tmp_path / "*.csv", 1, shuffle=False)


def test_a_column_without_any_value_is_text_and_no_other_file_is_read_for_a_known_type(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n,1\n")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe")
    (batch,) = csv_input_fn(tmp_path / "a.csv", 9, shuffle=False)()
    assert batch["x"].tolist() == [b""]
    both = tmp_path / "*.csv"
    assert csv_input_fn(both, 9, shuffle=False, select_columns=["y"]).files[1:]
    assert csv_input_fn(both, 9, shuffle=False, column_types={"x": "int64"}).files[1:]
    with pytest.raises(InputError, match=r"b\.csv is text in UTF-16"):
        csv_input_fn(both, 9, shuffle=False)


@pytest.mark.parametrize(
    ("fields", "dtype"),
    [
        (["00123", "10001"], "object"),
        (["10001", '"00123"'], "object"),
        (["31", "0x1F"], "object"),
        (["-01", "5"], "object"),
        (["", "010"], "object"),
        (["0", "10"], "int64"),
        (["-0", "100"], "int64"),
        (["0.5", "00.5"], "float32"),
    ],
)
def test_whole_numbers_with_a_zero_before_them_are_texts(tmp_path: Path, fields, dtype) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("".join(f"{line}\n" for line in ["zip,n", *(f"{field},1" for field in fields)]))
    (batch,) = csv_input_fn(path, 10, shuffle=False, column_defaults=None)()
    assert (batch["zip"].dtype.name, batch["n"].dtype.name) == (dtype, "int64")
    if dtype == "object":
        assert batch["zip"].tolist() == [field.strip('"').encode() for field in fields]


def test_columns_are_chosen_typed_and_filled(tmp_path: Path) -> None:
    batch = read_table(
        tmp_path, select_columns=["e", "a"], column_types={"e": "int32", "a": "float64"}, column_defaults=[-1, None]
    )
    assert list(batch) == ["e", "a"]
    assert (batch["e"].dtype, batch["a"].dtype) == (np.int32, np.float64)
    assert batch["e"].tolist() == [-1, -1]


def test_na_values_and_defaults(tmp_path: Path) -> None:
    text = 'a,b\n1,NA\nNA,"NA"\n,\n'
    batch = read_table(
        tmp_path, text, na_values=["NA", ""], column_types={"a": "int64"}, column_defaults={"a": 5, "b": "none"}
    )
    assert batch["a"].tolist() == [1, 5, 5]
    assert batch["b"].tolist() == [b"none", b"NA", b"none"]


def test_na_values_by_column(tmp_path: Path) -> None:
    text = "a,b,c\n1,NA,NA\nNA,-,x\n,,\n"
    options: dict[str, Any] = {"na_values": {"a": ["NA", ""], "b": ["-"]}, "column_defaults": {"a": 5, "b": "none"}}
    batch = read_table(tmp_path, text, **options)
    assert batch["a"].tolist() == [1, 5, 5]
    assert batch["b"].tolist() == [b"NA", b"none", b""]
    assert batch["c"].tolist() == [b"NA", b"x", b""]
    only = read_table(tmp_path, text, **options | {"select_columns": ["b"], "column_defaults": None})
    assert only["b"].tolist() == [b"NA", b"", b""]
    with pytest.raises(ArgumentError, match="na_values names 'd'; the columns are a, b, c"):
        read_table(tmp_path, text, na_values={"d": [""]})


def test_na_values_that_are_iterated_once_count_in_every_block(tmp_path: Path) -> None:
    given: Any = iter(["NA", ""])
    batch = read_table(tmp_path, "a\n1\nNA\n", na_values=given, column_defaults={"a": 5})
    assert batch["a"].tolist() == [1, 5]


@pytest.mark.parametrize("given", ["NA", {"a": "NA"}])
def test_one_text_for_na_values_is_refused(tmp_path: Path, given: Any) -> None:
    """Pandas accepts it. Its characters, N and A, were the texts here."""
    with pytest.raises(
        ArgumentTypeError, match=r"na_values must hold lists of strings, given: 'NA'\. Write \['NA'\]\."
    ):
        read_table(tmp_path, "a,b\n1,x\n2,y\n", na_values=given)


def test_headers_delimiters_and_line_ends(tmp_path: Path) -> None:
    batch = read_table(
        tmp_path, "1\t'a'\r\n2\t\"b\r\n", header=False, column_names=["n", "w"], field_delim="\t", use_quote_delim=False
    )
    assert batch["n"].tolist() == [1, 2]
    assert batch["w"].tolist() == [b"'a'", b'"b']
    assert read_table(tmp_path, "\ufeffn,w\n1,a")["n"].tolist() == [1]
    assert list(read_table(tmp_path, "n,w\n1,a\n", column_names=["x", "y"])) == ["x", "y"]


def test_files_may_order_their_columns_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,w\n1,a\n")
    (tmp_path / "b.csv").write_text("w,n\nb,2\n")
    (batch,) = csv_input_fn(f"{tmp_path}/*.csv", 4, shuffle=False)()
    assert batch["n"].tolist() == [1, 2]
    assert batch["w"].tolist() == [b"a", b"b"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"select_columns": ["z"]}, ArgumentError, "select_columns names 'z'; the columns are a, b, c, d, e"),
        ({"select_columns": []}, ArgumentError, "select_columns must name columns"),
        ({"label_name": "z"}, ArgumentError, "label_name names 'z'"),
        ({"column_types": {"z": "int64"}}, ArgumentError, "column_types names 'z'"),
        ({"column_types": {"a": "nonsense"}}, ArgumentTypeError, "is not a dtype"),
        ({"column_types": {"a": "complex64"}}, ArgumentTypeError, "cannot be read"),
        ({"column_defaults": [1]}, ArgumentError, "column_defaults has 1 values, but there are 5 columns"),
        ({"column_defaults": {"a": "x"}}, ArgumentError, "column_defaults\\['a'\\] is 'x'"),
        ({"column_defaults": {"a": 1.5}}, ArgumentError, "it would become"),
        ({"header": False}, ArgumentError, "column_names must be given"),
        ({"column_names": ["a"]}, InputError, "line 1: 5 columns .* column_names has 1"),
        ({"field_delim": ";;"}, ArgumentError, "field_delim must be one ASCII character"),
    ],
)
def test_arguments_that_cannot_be(tmp_path: Path, options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        read_table(tmp_path, **options)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is empty"),
        ("a,a\n1,2\n", "two columns are named 'a'"),
        ("a\n", "no rows"),
        ("\n\na,b\n1,2\n", "line 1 is empty, but should name the columns"),
        ("\ufeff\na,b\n1,2\n", "line 1 is empty, but should name the columns"),
    ],
)
def test_heads_that_cannot_be(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        read_table(tmp_path, text)


@pytest.mark.parametrize("kind", ["gzip", "bz2", "xz", "zstd", "lz4"])
@pytest.mark.parametrize("make", [csv_input_fn, jsonl_input_fn])
def test_a_compressed_file_without_a_suffix_is_refused_as_such(tmp_path: Path, make: Any, kind: str) -> None:
    import bz2
    import lzma

    import pyarrow as pa

    content = b'{"a": 1}\n' if make is jsonl_input_fn else b"a\n1\n"
    pack = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}.get(kind)
    path = tmp_path / "rows"
    if pack is None:
        with pa.output_stream(str(path), compression=kind) as stream:
            stream.write(content)
    else:
        path.write_bytes(pack(content))
    with pytest.raises(
        InputError, match=rf"rows has the compression '{kind}'\. Set compression='{kind}', or add the suf"
    ):
        make(path, 1, shuffle=False)
    assert next(make(path, 1, shuffle=False, compression=kind)())["a"].tolist() == [1]


def test_a_compressed_file_without_names_of_columns_is_refused_as_such(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(gzip.compress(b"1,2\n"))
    with pytest.raises(InputError, match=r"rows\.csv has the compression 'gzip'\. Set compression='gzip'"):
        csv_input_fn(tmp_path / "rows.csv", 1, shuffle=False, header=False, column_names=["a", "b"])


def test_a_zip_archive_is_refused_as_such(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"PK\x03\x04" + bytes(40))
    with pytest.raises(InputError, match=r"rows\.csv is a zip archive\. Extract its files\."):
        csv_input_fn(tmp_path / "rows.csv", 1, shuffle=False)


def test_names_of_columns_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("größe,n\n1,2\n".encode("latin1"))
    with pytest.raises(InputError, match=r"line 1: the names of the columns are not valid UTF-8: b'gr\\xf6\\xdfe,n'"):
        csv_input_fn(path, 1, shuffle=False)
    (batch,) = csv_input_fn(path, 1, shuffle=False, column_names=["size", "n"])()
    assert batch["size"].tolist() == [1], "names that column_names replaces may have any encoding"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_byte_order_mark_before_a_quote_is_no_part_of_the_first_row(tmp_path: Path, suffix: str) -> None:
    content = '\ufeff"x, y",1\n"z",2\n'.encode()
    path = tmp_path / f"rows.csv{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    source = csv_input_fn(path, 1, shuffle=False, header=False, column_names=["w", "n"])
    iterator = source()
    assert next(iterator)["w"].tolist() == [b"x, y"]
    resumed = source()
    resumed.set_state(iterator.get_state())
    assert [batch["w"].tolist() for batch in resumed] == [[b"z"]]


@settings(max_examples=50)
@given(st.lists(st.tuples(cells, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=30), st.integers(64, 200))
def test_csv_is_read_as_python_reads_it(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int]], block: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_bytes(written([["word", "n"], *[[word, str(n)] for word, n in rows]], all_quoted=False))
    source = csv_input_fn(path, 7, shuffle=False, column_types={"word": "string", "n": "int64"}, block_bytes=block)
    batches = list(source())
    read = [pair for b in batches for pair in zip(b["word"].tolist(), b["n"].tolist(), strict=True)]
    assert read == [(word.encode(), n) for word, n in rows]


def test_lists_in_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"w": ["a", "b", "c"], "n": [1, 2], "m": 1}\n{"w": [], "n": null, "k": 3}\n\n{"w": ["d"], "n": [3], "m": 2}\n'
    )
    batches = list(jsonl_input_fn(path, 2, shuffle=False, select_columns=["w", "n", "m"], column_defaults={"m": -1})())
    assert list(itertools.chain.from_iterable(b["n"].tolist() for b in batches)) == [[1, 2], [-1, -1], [3]]
    assert batches[0]["w"].tolist() == [[b"a", b"b", b"c", b""], [b"", b"", b"", b""]]
    assert [value for b in batches for value in b["m"].tolist()] == [1, -1, 2]


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"PAR1\x15\x00\x15\x10", "a Parquet file"), ("x,y\n1,2\n".encode("utf-16-le"), "not text, or text in UTF-16")],
)
def test_a_header_that_is_not_text_is_refused(tmp_path, content, kind):
    (tmp_path / "rows.csv").write_bytes(content)
    with pytest.raises(InputError, match=f"rows.csv is {kind}: its first line contains NUL bytes"):
        csv_input_fn(tmp_path / "rows.csv", 1, shuffle=False)
