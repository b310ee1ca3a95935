"""Tokens outside a declared vocabulary make bad rows, in every kind of file."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_core import export
from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_inputs import csv_input_fn, jsonl_input_fn, parquet_input_fn, tfrecord_input_fn, write_tfrecord
from plugins.inputs.tests.written import SPEC, WRITERS, example, input_of

SPECIES = ["setosa", "versicolor", "virginica"]
GOOD = 60


def table(at: int | None, token: bytes = b"setsoa") -> dict[str, Any]:
    """Good rows, with one row with an unknown token."""
    words = [SPECIES[n % 3].encode() for n in range(GOOD)]
    labels, ids = [n % 2 for n in range(GOOD)], list(range(GOOD))
    if at is not None:
        words.insert(at, token)
        labels.insert(at, 1)
        ids.insert(at, -1)
    n = len(ids)
    word = np.empty(n, object)
    word[:] = words
    return {
        "id": np.array(ids),
        "weight": np.arange(n, dtype=np.float32),
        "count": np.arange(n),
        "word": word,
        "label": np.array(labels),
    }


def place(kind: str, row: int) -> str:
    """The name of a row in the error."""
    return {"csv": f"line {row + 2}", "jsonl": f"line {row + 1}", "parquet": f"row {row}"}.get(kind, f"record {row}")


@pytest.mark.parametrize("kind", list(WRITERS))
@pytest.mark.parametrize("at", [0, 31, GOOD])
def test_every_kind_of_file(tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, at: int) -> None:
    writer, suffix = WRITERS[kind]
    path = writer(tmp_path / f"rows.{suffix}", table(at))
    options: dict[str, Any] = {"shuffle": False, "block_bytes": 300, "vocabularies": {"word": SPECIES, "label": [0, 1]}}
    with pytest.raises(InputError) as raised:
        list(input_of(kind, path, 7, **options)())
    column = "feature 'word' has the" if kind == "tfrecord" else "column 'word':"
    message = (
        f"{path}, {place(kind, at)}: {column} unknown token 'setsoa' (nearest in the vocabulary: 'setosa'; "
        f"add it there if it is right)"
    )
    assert str(raised.value) == f'{message}. Correct the file, or leave such rows out with on_error="skip".'
    iterator = input_of(kind, path, 7, **options, on_error="skip")()
    with caplog.at_level(logging.WARNING, logger="estimator_inputs"):
        found = [number for features, _ in iterator for number in features["id"].tolist()]
    assert found == list(range(GOOD))
    assert iterator.bad_rows == 1
    assert caplog.messages == [f"Skipped {message}.", f"Skipped 1 bad rows in epoch 0 and read {GOOD} good ones."]


@pytest.mark.parametrize("kind", list(WRITERS))
def test_good_rows_are_the_same_with_and_without(tmp_path: Path, kind: str) -> None:
    writer, suffix = WRITERS[kind]
    path = writer(tmp_path / f"rows.{suffix}", table(None))
    plain = list(input_of(kind, path, 7, shuffle=True, seed=3)())
    checked = list(input_of(kind, path, 7, shuffle=True, seed=3, vocabularies={"word": SPECIES, "label": {0, 1}})())
    for (features, labels), (same, same_labels) in zip(plain, checked, strict=True):
        assert labels.tolist() == same_labels.tolist()
        assert {name: array.tolist() for name, array in features.items()} == {
            name: array.tolist() for name, array in same.items()
        }


def test_integers_and_several_faults_in_a_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("zone,size\n1,S\n7,S\n2,XS\n\n9,XS\n2,M\n")
    vocabularies = {"zone": [1, 2, 3], "size": ["S", "M"]}
    iterator = csv_input_fn(path, 9, shuffle=False, vocabularies=vocabularies, on_error="skip")()
    (batch,) = iterator
    assert batch["zone"].tolist() == [1, 2]
    assert batch["size"].tolist() == [b"S", b"M"]
    assert iterator.bad_rows == 3  # a row with two unknown tokens counts once
    with pytest.raises(InputError, match=r"line 3: column 'zone': unknown token 7 \(the vocabulary has 1, 2, 3;"):
        list(csv_input_fn(path, 9, shuffle=False, vocabularies=vocabularies)())


def test_lists_of_values(tmp_path: Path) -> None:
    rows = [{"id": 0, "tags": ["a", "b"]}, {"id": 1, "tags": []}, {"id": 2, "tags": ["a", "x", "y"]}, {"id": 3}]
    jsonl, parquet, records = tmp_path / "rows.jsonl", tmp_path / "rows.parquet", tmp_path / "rows.tfrecord"
    jsonl.write_text("".join(json.dumps(row) + "\n" for row in rows))
    import pyarrow as pa
    import pyarrow.parquet

    pa.parquet.write_table(pa.Table.from_pylist(rows), parquet)
    write_tfrecord(records, [example({k: np.array(v, object) for k, v in row.items() if v != []}) for row in rows])
    spec = {"id": export.FixedLenFeature((), "int64"), "tags": export.VarLenFeature("string")}
    options: dict[str, Any] = {"shuffle": False, "vocabularies": {"tags": ["a", "b"]}}
    for make, at in (
        (lambda **more: jsonl_input_fn(jsonl, 9, **options, **more), "line 3: column 'tags':"),
        (lambda **more: parquet_input_fn(parquet, 9, **options, **more), "row 2: column 'tags':"),
        (lambda **more: tfrecord_input_fn(records, 9, spec, **options, **more), "record 2: feature 'tags' has the"),
    ):
        with pytest.raises(InputError, match=rf"{at} unknown token 'x' \(the vocabulary has 'a', 'b';"):
            list(make()())
        iterator = make(on_error="skip")()
        (batch,) = iterator
        assert batch["id"].tolist() == [0, 1, 3]
        assert batch["tags"].tolist() == [[b"a", b"b"], [b"", b""], [b"", b""]]  # filling is not a token
        assert iterator.bad_rows == 1


def test_features_of_several_values_in_each_record(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    rows = [{"id": n, "pair": np.array([n, n + 1]), "steps": np.array([1, 2] * n)} for n in range(5)]
    write_tfrecord(path, [example(row) for row in rows])
    spec = {
        "id": export.FixedLenFeature((), "int64"),
        "pair": export.FixedLenFeature((2,), "int64"),
        "steps": export.FixedLenSequenceFeature((2,), "int64", allow_missing=True),
    }
    source = tfrecord_input_fn(path, 9, spec, shuffle=False, vocabularies={"pair": [0, 1, 2, 3, 4]}, on_error="skip")
    assert next(iterator := source())["id"].tolist() == [0, 1, 2, 3]
    assert iterator.bad_rows == 1
    with pytest.raises(InputError, match="record 1: feature 'steps' has the unknown token 2"):
        list(tfrecord_input_fn(path, 9, spec, shuffle=False, vocabularies={"steps": [1]})())


def test_an_empty_field_is_a_token_unless_it_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,size\n1,S\n2,\n3,M\n")
    with pytest.raises(InputError, match=r"line 3: column 'size': unknown token ''"):
        list(csv_input_fn(path, 9, shuffle=False, vocabularies={"size": ["S", "M"]})())
    for more in ({"vocabularies": {"size": ["", "S", "M"]}}, {"column_defaults": {"size": "S"}}):
        options: dict[str, Any] = {"vocabularies": {"size": ["S", "M"]}, **more}
        (batch,) = csv_input_fn(path, 9, shuffle=False, **options)()
        assert batch["id"].tolist() == [1, 2, 3]


def test_case_and_blanks_are_told_first(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("size\n LARGE\n")
    with pytest.raises(InputError, match=r"unknown token ' LARGE' \(nearest in .*: 'large', 'Large'; add"):
        list(csv_input_fn(path, 9, shuffle=False, vocabularies={"size": ["small", "large", "Large"]})())


def test_a_block_of_unknown_tokens_is_skipped_and_counted(tmp_path: Path) -> None:
    """Rows that are not shown need no message. A message would require a search for similar tokens."""
    path = tmp_path / "rows.csv"
    path.write_text("id,word\n" + "".join(f"{n},{'good' if n % 10 == 0 else f'w{n}'}\n" for n in range(20_000)))
    vocabulary = ["good", *(f"token{n}" for n in range(5000))]
    iterator = csv_input_fn(path, 5000, shuffle=False, vocabularies={"word": vocabulary}, on_error="skip")()
    assert [number for batch in iterator for number in batch["id"].tolist()] == list(range(0, 20_000, 10))
    assert iterator.bad_rows == 18_000


def test_another_vocabulary_is_another_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("size\nS\nM\n")

    def fingerprint(**options: Any) -> str:
        return csv_input_fn(path, 9, shuffle=False, on_error="skip", **options)().fingerprint

    first = fingerprint(vocabularies={"size": ["S", "M"]})
    assert first == fingerprint(vocabularies={"size": ["M", "S"]})
    assert first not in (fingerprint(), fingerprint(vocabularies={"size": ["S", "L"]}))


@pytest.mark.parametrize(
    ("vocabularies", "error", "message"),
    [
        ({"colour": ["a"]}, ArgumentError, "vocabularies names 'colour'; the columns are id, weight, word"),
        ({"word": []}, ArgumentError, r"vocabularies\['word'\] is empty"),
        ({"word": ["a", "b", b"a"]}, ArgumentError, r"vocabularies\['word'\] holds 'a' twice"),
        ({"id": [1, 2.5]}, ArgumentTypeError, r"vocabularies\['id'\] must hold strings or integers, given: 2.5"),
        ({"id": [1, True]}, ArgumentTypeError, "given: True"),
        ({"word": ["a", 1]}, ArgumentTypeError, r"vocabularies\['word'\] holds both strings and integers: 'a', 1"),
        ({"word": "abc"}, ArgumentTypeError, r"vocabularies\['word'\] must be a list of strings or of integers"),
        ({"word": 3}, ArgumentTypeError, r"vocabularies\['word'\] must be a list"),
        ({"id": ["1"]}, ArgumentTypeError, "holds strings, but the column is of type int64: .* as 'string'"),
        ({"word": [1]}, ArgumentTypeError, "holds integers, but the column is of type string: .* as 'int64'"),
        ({"weight": [1]}, ArgumentTypeError, "holds integers, but the column is of type float32"),
        ([("word", ["a"])], ArgumentTypeError, "vocabularies must be a dict of lists"),
    ],
)
def test_what_cannot_be_is_refused_at_once(tmp_path: Path, vocabularies: Any, error: Any, message: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,weight,word\n1,2.5,a\n")
    with pytest.raises(error, match=message):
        csv_input_fn(path, 2, shuffle=False, vocabularies=vocabularies)
    write_tfrecord(tmp_path / "rows.tfrecord", [b""])
    spec = {name: SPEC[name] for name in ("id", "weight", "word")}
    with pytest.raises(error, match=message.replace("columns are", "features are")):
        tfrecord_input_fn(tmp_path / "rows.tfrecord", 2, spec, shuffle=False, vocabularies=vocabularies)


def test_defaults_and_narrow_types_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,word\n1,a\n")
    options: dict[str, Any] = {"shuffle": False, "column_types": {"id": "int8"}}
    with pytest.raises(ArgumentError, match=r"'id'\] holds 300, which is outside the range of the column's type int8"):
        csv_input_fn(path, 2, vocabularies={"id": [1, 300]}, **options)
    with pytest.raises(ArgumentError, match=r"vocabularies\['word'\] lacks 'none', which is the default value"):
        csv_input_fn(path, 2, vocabularies={"word": ["a"]}, column_defaults={"word": "none"}, **options)
    spec = {"word": export.FixedLenFeature((2,), "string", ["a", "z"])}
    with pytest.raises(ArgumentError, match=r"vocabularies\['word'\] lacks 'z', which is the default value"):
        tfrecord_input_fn(path, 2, spec, shuffle=False, vocabularies={"word": ["a"]})
