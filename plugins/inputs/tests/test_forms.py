"""Every form of data can be used for training: the table of docs/inputs.md, form by form."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from estimator_core import export
from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_core.inputs import open_input
from estimator_core.testing import InputSuite
from estimator_inputs import (
    csv_input_fn,
    keras_input_fn,
    learn_schema,
    table_input_fn,
    tfrecord_input_fn,
    write_tfrecord,
)
from estimator_inputs.examples.message import sequence_example_class

N = 11


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": np.arange(N),
            "pay": pd.Series(np.arange(N) / 2).mask(np.arange(N) == 4),
            "port": [f"p{k % 3}" for k in range(N)],
            "y": np.arange(N) % 2,
        }
    )


class Stream:
    """An object that only exports an Arrow stream, as DuckDB's relations and ADBC's results do."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class OfHuggingFace:
    """The part of `datasets.Dataset` that is used."""

    def __init__(self, table: pa.Table, **form: Any) -> None:
        self._table = table
        self.format = form

    def __len__(self) -> int:
        return self._table.num_rows

    def with_format(self, kind: str, columns: list[str] | None = None) -> Any:
        assert kind == "arrow"
        return self if columns is None else OfHuggingFace(self._table.select(columns))

    def __getitem__(self, rows: slice) -> pa.Table:
        return self._table[rows]

    def iter(self, size: int) -> Any:
        return (pa.Table.from_batches([batch]) for batch in self._table.to_batches(max_chunksize=size))


def rows_of_database(rows: pd.DataFrame) -> pa.Table:
    with sqlite3.connect(":memory:") as connection:
        rows.to_sql("people", connection, index=False)
        cursor = connection.execute("select * from people")
        names = [column[0] for column in cursor.description]
        return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in cursor])


TABLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": pl.from_pandas,
    "polars, categories": lambda rows: pl.from_pandas(rows).with_columns(pl.col("port").cast(pl.Categorical)),
    "pandas": lambda rows: rows,
    "arrow": lambda rows: pa.Table.from_pandas(rows, preserve_index=False),
    "arrow, several chunks": lambda rows: pa.concat_tables(
        [pa.Table.from_pandas(rows[:4]), pa.Table.from_pandas(rows[4:])]
    ),
    "a stream": lambda rows: Stream(pa.Table.from_pandas(rows, preserve_index=False)),
    "Hugging Face": lambda rows: OfHuggingFace(pa.Table.from_pandas(rows, preserve_index=False)),
    "SQL": rows_of_database,
}  # fmt: skip


@pytest.mark.parametrize("form", list(TABLES))
def test_tables(form: str) -> None:
    rows = frame()
    made = TABLES[form](rows)
    columns = ["age", "pay", "port", "y"]
    source = table_input_fn(made, 4, shuffle=False, label_name="y", select_columns=columns)
    batches = list(open_input(source, mode="train"))
    assert [batch.size for batch in batches] == [4, 4, 3]
    assert np.concatenate([batch.labels for batch in batches]).tolist() == rows["y"].tolist()
    assert np.concatenate([batch.features["age"] for batch in batches]).dtype == np.int32
    np.testing.assert_array_equal(np.concatenate([b.features["pay"] for b in batches]), rows["pay"].astype(np.float32))
    assert np.concatenate([batch.host["port"] for batch in batches]).tolist() == [w.encode() for w in rows["port"]]
    schema = learn_schema(TABLES[form](rows), label="y")
    assert (schema.feature("pay").missing_rate, schema.classes) == (1 / N, (0, 1))


def test_the_format_of_a_dataset_counts() -> None:
    """Its columns were all read, and its transform was lost."""
    table = pa.table({"a": [1.0], "b": [2]})
    (batch,) = table_input_fn(OfHuggingFace(table, type="numpy", columns=["a"]), 1, shuffle=False)()
    assert list(batch) == list(learn_schema(OfHuggingFace(table, columns=["a"])).features) == ["a"]
    (batch,) = table_input_fn(OfHuggingFace(table, columns=["a"], output_all_columns=True), 1, shuffle=False)()
    assert list(batch) == ["a", "b"]
    changed = OfHuggingFace(table, type="custom", columns=["a", "b"])
    for read in (lambda: table_input_fn(changed, 1, shuffle=False), lambda: learn_schema(changed)):
        with pytest.raises(ArgumentError, match=r"has a transform .* dataset\.with_format\(None\)\.map\(transform"):
            read()


@pytest.mark.parametrize("imports", ["", "import pandas; "])
def test_periods_in_files_are_refused(tmp_path: Path, imports: str) -> None:
    """They were words in a process that imports pandas, and numbers in any other."""
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"when": pd.period_range("2024-01", periods=2, freq="M")}).to_parquet(path)
    read = f"{imports}import estimator_inputs as i; next(i.parquet_input_fn({str(path)!r}, 2, shuffle=False)())"
    done = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=False)
    assert "rows.parquet: column 'when' holds periods. Write it as times" in done.stderr


class TestPolars(InputSuite):
    def make(self) -> Any:
        rows = pl.from_pandas(pd.concat([frame()] * 9, ignore_index=True).assign(id=np.arange(9 * N)))
        return table_input_fn(rows, 10, shuffle=True, seed=3, label_name="y")


@pytest.mark.parametrize("index", [[3, 1, 2], pd.Index([3, 1, 2], name="id"), pd.MultiIndex.from_arrays([[1] * 3] * 2)])
def test_the_index_of_a_frame_is_no_feature(index: Any) -> None:
    """The index of a sample of rows was a feature of integers, which the frame of all rows lacks."""
    (batch,) = table_input_fn(pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=index), 3, shuffle=False)()
    assert {name: column.tolist() for name, column in batch.items()} == {"a": [1.0, 2.0, 3.0]}


def test_columns_of_tables() -> None:
    table = pa.table(
        {
            "whole": pa.array([1, None], pa.int16()),
            "true": pa.array([True, None]),
            "word": pa.array(["\u00e4", None]),
            "when": pa.array([0, None], pa.timestamp("s")),
            "pair": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2)),
            "list": pa.array([[1, 2, 3], None]),
            "decimal": pa.array([1.5, 2.5]).cast(pa.decimal128(5, 2)),
        }
    )
    (batch,) = table_input_fn(table, 2, shuffle=False)()
    assert batch["whole"].tolist()[0] == 1.0
    assert np.isnan([batch["whole"][1], batch["true"][1]]).all()
    assert batch["word"].tolist() == ["\u00e4".encode(), b""]
    assert batch["when"].dtype.kind == "M"
    assert batch["pair"].tolist() == [[1, 2], [3, 4]]
    assert batch["list"].tolist() == [[1, 2, 3, -1], [-1, -1, -1, -1]]
    assert batch["decimal"].tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("table", "options", "error", "message"),
    [
        (
            {"a": [1]},
            {},
            ArgumentTypeError,
            "export an Arrow stream, .* got dict. For a dict of arrays",
        ),
        ("a.csv", {}, ArgumentTypeError, "got str. For files: csv_input_fn"),
        (pa.table({"a": [1]}), {"label_name": "b"}, ArgumentError, "label_name names 'b'; the columns are a"),
        (pa.table({"a": [1]}), {"label_name": "a"}, ArgumentError, "There is no column except the label 'a'"),
        (pa.table({"a": [1]}), {"select_columns": ["z"]}, ArgumentError, "select_columns names 'z'"),
        (pa.table({"a": [1]})[:0], {}, ArgumentError, "has no rows. A reader or another stream can be read only once"),
        (pa.table({}), {}, ArgumentError, "has no rows"),
        (pa.table({"a": [1]}), {"select_columns": []}, ArgumentError, "There is no column: an input needs a feature"),
        (pl.LazyFrame({"a": [1]}), {}, ArgumentTypeError, r"got LazyFrame. Collect it first: frame.collect\(\)"),
        (pd.DataFrame({"a": pd.period_range("2024", periods=1)}), {}, ArgumentError, "'a' holds periods: convert it"),
        (pa.table({"a": [{"b": 1}]}), {}, ArgumentError, "Column 'a' holds struct<b: int64>: leave it out"),
        (pa.table([[1], [2]], ["a", "a"]), {}, ArgumentError, r"several columns with the same name: \['a'\]"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, ArgumentError, r"several columns with the same name: \['a'\]"),
        (
            pd.DataFrame({"z": [1, 2], "a": pd.arrays.SparseArray([0, 1])}),
            {},
            ArgumentError,
            r"Column 'a' cannot be converted to Arrow: .* not supported\. Cast it, or drop it",
        ),
        (
            pd.DataFrame({"z": [1, 2], "a": [3, "x"]}, index=pd.Index([1, "x"], dtype=object)),
            {},
            ArgumentError,
            "Column 'a' cannot be converted to Arrow: ",
        ),
    ],
)
def test_tables_that_cannot_be_used(table: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        table_input_fn(table, 2, shuffle=False, **options)


BATCHES = [({"a": np.arange(3.0)}, np.array([0, 1, 0]), np.array([1.0, 2.0, 0.5])) for _ in range(2)]


class Numbered:
    """A `keras.utils.PyDataset`: batches by number."""

    def __len__(self) -> int:
        return len(BATCHES)

    def __getitem__(self, number: int) -> Any:
        if number >= len(BATCHES):
            raise AssertionError("asked for more than there are")
        return BATCHES[number]


@pytest.mark.parametrize(
    "source", [BATCHES, lambda: iter(BATCHES), Numbered(), Numbered], ids=["list", "function", "PyDataset", "class"]
)
def test_batches_of_keras(source: Any) -> None:
    for _ in range(2):
        batches = list(open_input(keras_input_fn(source, weight_column="w"), mode="train"))
        assert len(batches) == 2
        assert batches[1].features["w"].tolist() == [1.0, 2.0, 0.5]
        assert batches[1].labels.tolist() == [0, 1, 0]


def test_a_list_is_a_batch_of_keras_as_of_a_torch_loader() -> None:
    x, y, w = np.ones((2, 1)), np.zeros(2), np.array([1.0, 0.5])
    weighted = next(open_input(keras_input_fn([[x, y, w]]), mode="train"))
    assert weighted.features["sample_weight"].tolist() == [1.0, 0.5]
    assert next(open_input(keras_input_fn([[x]]), mode="infer")).features.shape == (2, 1)
    with pytest.raises(InputError, match="A batch has 4 parts"):
        list(keras_input_fn([[x, y, w, w]])())


def test_other_batches_of_keras_and_those_that_are_none() -> None:
    x, y, w = np.ones((2, 1)), np.zeros(2), np.ones(2)
    made = list(keras_input_fn([(x, y), (x,), x, (x, y, None), (x, y, w)])())
    assert [type(one) for one in made] == [tuple, np.ndarray, np.ndarray, tuple, tuple]
    assert set(made[-1][0]) == {"x", "sample_weight"}
    with pytest.raises(InputError, match="A batch has 4 parts"):
        list(keras_input_fn([(x, y, w, w)])())
    with pytest.raises(InputError, match="The features already have 'x', and the batch has weights too"):
        list(keras_input_fn([({"x": x}, y, w)], weight_column="x")())
    with pytest.raises(ArgumentTypeError, match="keras_input_fn needs batches"):
        keras_input_fn(3)
    with pytest.raises(ArgumentError, match="weight_column must be a name"):
        keras_input_fn([], weight_column="")


def sequence(k: int) -> bytes:
    record = sequence_example_class()()
    record.context.feature["id"].int64_list.value.append(k)
    for step in range(k):
        record.feature_lists.feature_list["points"].feature.add().float_list.value.extend([step, k])
        record.feature_lists.feature_list["words"].feature.add().bytes_list.value.append(b"w%d" % step)
    record.feature_lists.feature_list["points"].SetInParent()
    record.feature_lists.feature_list["words"].SetInParent()
    return record.SerializeToString()


SEQUENCES = {
    "points": export.FixedLenSequenceFeature((2,), "float32"),
    "words": export.VarLenFeature("string"),
}
CONTEXT = {"id": export.FixedLenFeature((), "int64")}


def test_sequence_examples(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    write_tfrecord(path, [sequence(k) for k in (2, 0, 3)])
    source = tfrecord_input_fn(path, 3, CONTEXT, shuffle=False, label_key="id", sequence_features=SEQUENCES)
    ((features, labels),) = source()
    assert labels.tolist() == [2, 0, 3]
    assert features["points"].shape == (3, 4, 2)
    assert features["points"][0].tolist() == [[0, 2], [1, 2], [0, 0], [0, 0]]
    assert features["words"].tolist()[2] == [b"w0", b"w1", b"w2", b""]
    assert features["words"].tolist()[1] == [b""] * 4


def test_bad_sequence_examples(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    mixed = sequence_example_class().FromString(sequence(1))
    mixed.feature_lists.feature_list["words"].feature.add().int64_list.value.append(1)
    uneven = sequence_example_class().FromString(sequence(2))  # four values, but not two in each step
    uneven.feature_lists.feature_list["points"].feature[0].float_list.value.append(0.5)
    uneven.feature_lists.feature_list["points"].feature[1].float_list.value.pop()
    gap = sequence_example_class().FromString(sequence(2))
    gap.feature_lists.feature_list["words"].feature[0].bytes_list.value.pop()
    bad = {
        b"\xffbad": "not a serialized tf.SequenceExample",
        mixed.SerializeToString(): "feature 'words' has steps of several kinds: bytes_list, int64_list",
        uneven.SerializeToString(): "feature 'points' has 3 values in step 0, but must have 2",
        gap.SerializeToString(): "feature 'words' has 0 values in step 0, but must have 1",
        sequence_example_class()().SerializeToString(): "feature 'id' is missing",
    }
    for record, message in bad.items():
        write_tfrecord(path, [sequence(1), record, sequence(2)])
        with pytest.raises(InputError, match=f"record 1: {message}"):
            list(tfrecord_input_fn(path, 3, CONTEXT, shuffle=False, sequence_features=SEQUENCES)())
        (batch,) = tfrecord_input_fn(path, 3, CONTEXT, shuffle=False, sequence_features=SEQUENCES, on_error="skip")()
        assert batch["id"].tolist() == [1, 2]
    for features, sequences, message in (
        (CONTEXT, CONTEXT, "'id' is in both features and sequence_features"),
        (CONTEXT, {"x": export.FixedLenFeature((), "int64")}, "must be a FixedLenSequenceFeature"),
    ):
        with pytest.raises(ArgumentError, match=message):
            tfrecord_input_fn(path, 3, features, shuffle=False, sequence_features=sequences)


def test_a_feature_list_may_be_missing_only_if_the_user_says_so(tmp_path: Path) -> None:
    """tf.io.parse_sequence_example also refuses a record without a list of fixed steps, which was read as empty."""
    path = tmp_path / "rows.tfrecord"
    record = sequence_example_class().FromString(sequence(1))
    del record.feature_lists.feature_list["points"]
    write_tfrecord(path, [sequence(1), record.SerializeToString()])

    def read(**options: Any) -> Any:
        points = export.FixedLenSequenceFeature((2,), "float32", **options)
        lists = {"points": points, "words": export.VarLenFeature("string")}
        ((batch,)) = tfrecord_input_fn(path, 2, CONTEXT, shuffle=False, sequence_features=lists)()
        return batch["points"].tolist()

    for options in ({}, {"allow_missing": False}):
        with pytest.raises(InputError, match="record 1: feature 'points' is missing and allow_missing is not set"):
            read(**options)
    assert read(allow_missing=True) == [[[0, 1]], [[0, 0]]]


def test_lists_and_context_of_a_sequence_example_are_apart(tmp_path: Path) -> None:
    """A list that nobody reads may hold anything, and a feature of the context is no list."""
    path = tmp_path / "rows.tfrecord"
    record = sequence_example_class().FromString(sequence(1))
    for name in ("id", "unread"):
        record.feature_lists.feature_list[name].feature.add().int64_list.value.extend([7, 8])
        record.feature_lists.feature_list[name].feature.add().bytes_list.value.append(b"x")
    record.context.feature["words"].bytes_list.value.append(b"of the context")
    write_tfrecord(path, [record.SerializeToString()])
    (batch,) = tfrecord_input_fn(path, 1, CONTEXT, shuffle=False, sequence_features=SEQUENCES)()
    assert (batch["id"].tolist(), batch["words"].tolist()) == ([1], [[b"w0"]])


def test_a_dataset_of_grain() -> None:
    grain = pytest.importorskip("grain")
    rows = frame()
    data = grain.MapDataset.source(rows.to_dict("records")).map(lambda row: {"age": row["age"]}).batch(4)
    assert sum(batch.size for batch in open_input(lambda: data, mode="train")) == N


@pytest.mark.parametrize(
    "text", ['t,a\r"x\ny",1\r"z",3\r', "a,b\r1,2\r3,4\n5,6\n", "a,b\r1,2\r\n3,4\r\n"], ids=["quotes", "LF", "CRLF"]
)
def test_a_header_that_ends_in_cr_swallows_no_rows(tmp_path, text):
    """Its rows up to the first LF were read as a part of the header."""
    path = tmp_path / "rows.csv"
    path.write_text(text, newline="")
    with pytest.raises(InputError, match="its lines end in CR"):
        csv_input_fn(str(path), 2, shuffle=False)


def test_a_quoted_name_may_hold_cr(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('"a\r\nb",c\r\n1,2\r\n', newline="")
    (batch,) = csv_input_fn(str(path), 2, shuffle=False)()
    assert sorted(batch) == ["a\r\nb", "c"]
