"""Tests of the files of `estimator predict`: lists of any length, damaged arrays, batches of one size."""

import gzip
import io
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import estimator_core as ec
from estimator_core.errors import ArgumentError, ExportError
from estimator_core.export import Feature
from estimator_exporters.scoring.incomplete_rows import Treatment
from estimator_exporters.scoring.read import Reading, read
from estimator_exporters.scoring.run import Job, score_files
from estimator_exporters.scoring.score import score
from estimator_exporters.scoring.write import writing
from plugins.exporters.tests import small_model


def read_all(path, **inputs):
    """The inputs of all rows of a file."""
    batches = list(read(path, Reading(inputs=inputs, batch_size=4)))
    return {name: np.concatenate([batch.arrays[name] for batch in batches]).tolist() for name in inputs}


@pytest.mark.plugins
@pytest.mark.parametrize("width", [2, 3, 5, 8])
def test_lists_of_any_length_are_read(tmp_path, width):
    numbers = [[float(row)] * width for row in range(6)]
    texts = [[f"t{row}"] * (width - row % 2) for row in range(6)]
    parquet.write_table(pa.table({"x": numbers, "t": texts}), tmp_path / "rows.parquet")
    found = read_all(tmp_path / "rows.parquet", x=Feature((None, width)), t=Feature((None, width), "string"))
    assert found["x"] == numbers
    assert [[text.decode() for text in row if text] for row in found["t"]] == texts


@pytest.mark.plugins
@pytest.mark.parametrize("width", [2, 5])
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
def test_lists_whose_missing_numbers_are_nan_may_be_shorter(tmp_path, kind, width):
    """Weights are such lists: a row has as many weights as values."""
    lists = [[1.0], [2.0, 3.0], None, [None, 4.0], []]
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        parquet.write_table(pa.table({"w": lists}), path)
    elif kind == "jsonl":
        path.write_text("\n".join(json.dumps({"w": row}) for row in lists))
    else:
        path.write_text("\n".join(["w,n", *(f'"{"" if row is None else json.dumps(row)}",1' for row in lists)]))
    inputs = {"w": Feature((None, width))}
    found = list(read(path, Reading(inputs=inputs, batch_size=9, defaults={"w": np.nan})))
    expected = np.full((5, width), np.nan)
    expected[0, 0], expected[1, :2], expected[3, 1] = 1, (2, 3), 4
    np.testing.assert_array_equal(found[0].arrays["w"], expected)
    with pytest.raises(ArgumentError, match=r"row 0: column 'w' has 1 values|'w' must have shape|has no value"):
        list(read(path, Reading(inputs=inputs, batch_size=9, defaults={"w": 0.0})))


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("name", "between", "said"), [("r.csv", ";", ";"), ("r.tsv", "\t", None), ("r.tsv.gz", "|", "|")]
)
@pytest.mark.parametrize("width", [None, 3])
def test_columns_of_csv_may_be_separated_by_another_character(tmp_path, name, between, said, width):
    """Single values are read by estimator-inputs, arrays as quoted JSON."""
    numbers = [[float(row)] * (width or 1) for row in range(6)]
    lines = [f"a{between}x", *(f'{row}{between}"{json.dumps(x if width else x[0])}"' for row, x in enumerate(numbers))]
    content = "\n".join([*lines, ""]).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    inputs = {"a": Feature((None,)), "x": Feature((None, width) if width else (None,))}
    batches = list(read(tmp_path / name, Reading(inputs=inputs, batch_size=4, field_delim=said)))
    found = [np.concatenate([batch.arrays[name] for batch in batches]).tolist() for name in inputs]
    assert found == [list(range(6)), numbers if width else [x for (x,) in numbers]]
    if said:
        with pytest.raises(ArgumentError, match=r"field-delim|has no value"):
            list(read(tmp_path / name, Reading(inputs=inputs, batch_size=4, field_delim=",")))


def packed(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def one_array():
    file = io.BytesIO()
    np.save(file, np.zeros((2, 3)))
    return file.getvalue()


SOUND = packed(x=np.ones((100, 3), np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (SOUND[: len(SOUND) // 2], "cannot be read"),
        (SOUND[:60] + bytes(10) + SOUND[70:], "cannot be read"),
        (one_array(), r"lacks \['x'\]"),
        (packed(x=np.float32(1)), r"\['x'\] hold a single value"),
    ],
    ids=["empty", "cut", "changed", "one array", "a single value"],
)
def test_arrays_that_cannot_be_read_are_told(tmp_path, content, message):
    (tmp_path / "rows.npz").write_bytes(content)
    with pytest.raises(ArgumentError, match=f"rows.npz.*{message}"):
        read_all(tmp_path / "rows.npz", x=Feature((None, 3)))


def test_narrow_floats_of_an_npz_file_are_numbers(tmp_path):
    with writing(tmp_path / "scores.npz") as output:
        output.add({"y": np.array([1.5, -2.0], ml_dtypes.bfloat16)})
    assert np.load(tmp_path / "scores.npz")["y"].tolist() == [1.5, -2.0]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_an_export_of_one_batch_size_scores_batches_of_it(estimator, tmp_path, on_error):
    receiver = ec.export.build_raw_serving_input_receiver_fn({"x": Feature((4, 3))})
    export = estimator.export_saved_model(str(tmp_path / "export"), receiver)
    (features, _) = small_model.rows(12)
    job = Job(export=export, inputs=(str(tmp_path / "x.npz"),), output=tmp_path / "y.npz", on_error=on_error)
    np.savez(tmp_path / "x.npz", **features)
    assert score_files(job).rows == 12
    run = ec.export.load(export).signatures["serving_default"]
    expected = np.concatenate([run(x=features["x"][at : at + 4])["logits"] for at in (0, 4, 8)])
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["logits"], expected)
    np.savez(tmp_path / "x.npz", x=features["x"][:10])
    with pytest.raises(ArgumentError, match=r"row 8: the export takes batches of 4 rows, but the last one has 2"):
        score_files(job)
    with pytest.raises(ArgumentError, match=r"--batch-size 8: the export takes batches of 4 rows"):
        score_files(replace(job, batch_size=8))


def test_complex_scores_are_written_where_a_file_can_hold_them(estimator, tmp_path):
    def turned(features, labels, mode):
        spec = small_model.model_fn(features, labels, mode)
        return ec.EstimatorSpec(mode, predictions={"y": spec.predictions["logits"] * 1j})

    config = ec.RunConfig(model_dir=estimator.model_dir)
    export = ec.Estimator(turned, config=config).export_saved_model(str(tmp_path / "export"), small_model.receiver_fn)
    np.savez(tmp_path / "x.npz", **small_model.rows(2)[0])
    job = Job(export=export, inputs=(str(tmp_path / "x.npz"),), output=tmp_path / "y.npz")
    assert score_files(job).rows == 2
    assert np.load(tmp_path / "y.npz")["y"].imag.any()
    for name in ("y.csv", "y.parquet", "y.jsonl"):
        with pytest.raises(ArgumentError, match=r"cannot hold complex numbers, but \['y'\] are complex"):
            score_files(replace(job, output=tmp_path / name))


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"na_values": "NA"},
        {"na_values": [None]},
        {"field_delim": 5},
        {"field_delim": ";;"},
        {"column_defaults": None},
    ],
)
def test_what_an_export_says_of_reading_is_checked(tmp_path, said):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "reading.json").write_text(
        json.dumps({"column_defaults": {}, "on_error": "raise", "na_values": ["NA"], "field_delim": ";", **said})
    )
    export: Any = SimpleNamespace(manifest={"files": {"assets/reading.json": {}}})
    if said:
        with pytest.raises(ExportError, match=r"reading\.json does not say how rows were read"):
            Treatment.of(tmp_path, export)
    else:
        found = Treatment.of(tmp_path, export)
        assert (found.na_values, found.field_delim) == (("NA",), ";")


def test_texts_of_no_value_beside_arrays_of_csv(tmp_path):
    (tmp_path / "rows.csv").write_text('a,x\nNA,"[1,2]"\n3,"[3,4]"\n')
    inputs = {"a": Feature((None,)), "x": Feature((None, 2))}
    reading = Reading(inputs=inputs, batch_size=4, na_values=("NA",), defaults={"a": 7.0})
    (batch,) = read(tmp_path / "rows.csv", reading)
    assert batch.arrays["a"].tolist() == [7.0, 3.0]


@pytest.mark.plugins
@pytest.mark.parametrize("width", [None, 2])
def test_texts_to_keep_are_those_of_the_file(tmp_path, width):
    """Texts that mean "no value" have this meaning only in inputs. A column to keep must not lose them."""
    numbers = ["NA", "1", "2"] if width is None else ['"[1,2]"', '"[3,4]"', '"[5,6]"']
    lines = [f"{x},{y},{k}" for x, y, k in zip(numbers, ["1", "NA", "3"], ["NA", '"null"', ""], strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y,k", *lines, ""]))
    inputs = {"x": Feature((None, width) if width else (None,)), "y": Feature((None,))}
    defaults = {"x": 7.0, "y": 8.0}
    reading = Reading(inputs=inputs, batch_size=4, na_values=("NA", "null"), defaults=defaults, keep=("k",))
    (batch,) = read(tmp_path / "rows.csv", reading)
    assert [t.decode() if isinstance(t, bytes) else t for t in batch.kept["k"].tolist()] == ["NA", "null", ""]
    assert batch.arrays["y"].tolist() == [1, 8, 3]
    assert width or batch.arrays["x"].tolist() == [7, 1, 2]


def lines_of(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def kept(path, *names):
    """The columns of a file that are copied to the output together with the number "a"."""
    batches = list(read(path, Reading(inputs={"a": Feature((None,))}, batch_size=4, keep=names)))
    texts = {name: [text for batch in batches for text in batch.kept[name].tolist()] for name in names}
    return {name: [t.decode() if isinstance(t, bytes) else t for t in column] for name, column in texts.items()}


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["A17"], "A17"),
        ([5.5], "5.5"),
        ([2**64 - 1], str(2**64 - 1)),
        ([2**60 + 1, 0.5], str(2**60 + 1)),
        ([[1, "b"]], '[1, "b"]'),
        ([{"b": 1}], '{"b": 1}'),
        ([True, None], "true"),
    ],
    ids=str,
)
@pytest.mark.parametrize("before", [[], list(range(150))], ids=["first", "later"])
def test_any_value_of_json_lines_is_kept_as_text(tmp_path, values, texts, before):
    rows = [*before, *values]
    (tmp_path / "rows.jsonl").write_text(lines_of({"a": 1.0, "id": value} for value in rows))
    found = kept(tmp_path / "rows.jsonl", "id")["id"]
    assert len(found) == len(rows)
    assert found[len(before)] == texts


@pytest.mark.plugins
def test_lists_of_parquet_are_kept_as_json(tmp_path):
    columns = {
        "a": [1.0, 2.0, 3.0],
        "uneven": [[1, 2], [], [3]],
        "even": pa.array([[0.1, None], [float("nan"), 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2)),
        "words": [["b"], ['"c"', "d"], None],
        "big": pa.array([[2**64 - 1]] * 3, pa.list_(pa.uint64())),
    }
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    found = kept(tmp_path / "rows.parquet", *list(columns)[1:])
    assert found["uneven"] == ["[1, 2]", "[]", "[3]"]
    assert found["even"] == ["[0.1, null]", '["NaN", 2]', "[3, 4]"]
    assert [json.loads(text) for text in found["words"]] == [["b"], ['"c"', "d"], []]
    assert found["big"] == [f"[{2**64 - 1}]"] * 3


@pytest.mark.plugins
@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.jsonl", "r.parquet", "r.tfrecord"])
def test_a_part_without_rows_says_nothing(tmp_path, name):
    content = b"a,id\n\n" if name.startswith("r.csv") else b""
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    if name == "r.parquet":
        parquet.write_table(pa.table({"a": pa.array([], pa.float32())}), tmp_path / name)
    keep = () if name == "r.tfrecord" else ("id",)
    assert list(read(tmp_path / name, Reading(inputs={"a": Feature((None,))}, batch_size=4, keep=keep))) == []


VECTORS = {"x": Feature((None, 2)), "t": Feature((None, 3), "string"), "b": Feature((None,), "bool")}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('x,t,b\n"[1, 2]",[],true,9\n', "line 2: 4 fields, more than the 3 columns"),
        ('x,b,t\n"[1, 2]",true\n', "line 2: 2 fields, fewer than the 3 columns"),
        ('x,t,t,b\n"[1, 2]",[],[],true\n', "line 1: two columns have the name 't'"),
        ('x,b\n"[1, 2]",true\n', r"lacks the columns \['t'\]"),
        ('x,t,b\n"[1, 2]",[],maybe\n', "line 2: column 'b' cannot be read as bool: 'maybe'"),
    ],
)
def test_rows_of_csv_with_arrays_have_a_field_a_column(tmp_path, content, message):
    (tmp_path / "rows.csv").write_text(content)
    with pytest.raises(ArgumentError, match=message):
        read_all(tmp_path / "rows.csv", **VECTORS)


def test_columns_for_an_export_of_serialized_examples_are_refused_with_the_cure(tmp_path):
    (tmp_path / "rows.csv").write_text("age,city\n3,Rome\n")
    cure = r"takes serialized tf.Examples.*\.tfrecord.*build_raw_serving_input_receiver_fn"
    with pytest.raises(ArgumentError, match=cure):
        read_all(tmp_path / "rows.csv", examples=Feature((None,), "string"))


def test_texts_beside_arrays_may_be_missing(tmp_path):
    """Texts may be missing, as in rows of single values and in lists of Parquet."""
    texts = [["a"], None, ["a", "b", "c"]]
    rows = [{"x": [1.0, 2.0], "t": text, "b": True} for text in texts]
    del rows[1]["t"]
    (tmp_path / "rows.jsonl").write_text(lines_of(rows))
    wanted = [["a", "", ""], ["", "", ""], ["a", "b", "c"]]
    assert read_all(tmp_path / "rows.jsonl", **VECTORS)["t"] == wanted
    fields = ["true", "True", "1"]
    lines = [f'"[1, 2]";{json.dumps(text) if text else ""};{b}' for text, b in zip(texts, fields, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["x;t;b", *lines]))
    found = list(read(tmp_path / "rows.csv", Reading(inputs=VECTORS, batch_size=4, field_delim=";")))
    assert found[0].arrays["t"].tolist() == wanted
    assert found[0].arrays["b"].tolist() == [True] * 3
    (tmp_path / "rows.jsonl").write_text(lines_of({"x": [1.0, 2.0], "b": True} for _ in range(2)))
    with pytest.raises(ArgumentError, match="lacks the columns"):
        read_all(tmp_path / "rows.jsonl", **VECTORS)


@pytest.mark.parametrize(("text", "number"), [("+5", 5.0), (".5", 0.5), ("007", 7.0)])
def test_numbers_beside_arrays_of_csv_are_written_as_elsewhere(tmp_path, text, number):
    (tmp_path / "rows.csv").write_text(f'x,a\n"[1, 2]",{text}\n')
    assert read_all(tmp_path / "rows.csv", x=Feature((None, 2)), a=Feature((None,)))["a"] == [number]


@pytest.mark.plugins
@pytest.mark.parametrize("kept", [(), ("k",)], ids=["alone", "kept"])
@pytest.mark.parametrize("width", [None, 3])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_file_of_bad_rows_alone_does_not_end_a_scoring(tmp_path, caplog, kind, width, kept):
    """The other files are scored, and the log counts the bad rows."""
    path = tmp_path / f"bad.{kind}"
    if kind == "parquet":
        missing = pa.array([None, None], pa.list_(pa.float32()) if width else pa.float32())
        parquet.write_table(pa.table({"x": missing, "k": ["a", "b"]}), path)
    else:
        lines = "nothing\n[1]\n" if width else '{"x": "bad", "k": "a"}\n{"x": null, "k": "b"}\n'
        path.write_text("x,k\nbad,a\n,b\n" if kind == "csv" else lines)
    reading = Reading(
        inputs={"x": Feature((None, width) if width else (None,))}, batch_size=4, skip_bad_rows=True, keep=kept
    )
    assert list(read(path, reading)) == []
    assert "Skipped 2 " in caplog.text
    with pytest.raises(ec.EstimatorError, match=r"column 'x'|not JSON"):
        list(read(path, replace(reading, skip_bad_rows=False)))


@pytest.mark.plugins
def test_rows_of_parquet_whose_lists_do_not_fit_are_skipped_as_others_are(tmp_path, caplog):
    """This holds even if a whole batch is skipped."""
    lists = [[1.0, 2.0], [3.0], [4.0, 5.0], [6.0], [7.0], [], [8.0, 9.0, 10.0], [11.0], [12.0, 13.0]]
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"x": lists, "k": list("abcdefghi")}), path)
    reading = Reading(inputs={"x": Feature((None, 2))}, batch_size=4, skip_bad_rows=True, keep=("k",))
    batches = list(read(path, reading))
    assert [batch.arrays["x"].tolist() for batch in batches] == [[[1, 2], [4, 5]], [[12, 13]]]
    assert [batch.first for batch in batches] == [0, 2]  # among the readable rows
    assert [batch.kept["k"].tolist() for batch in batches] == [[b"a", b"c"], [b"i"]]
    assert "row 1: column 'x' has 1 values, but the signature takes 2." in caplog.text
    assert f"Skipped 6 rows of {path} whose lists do not fit the signature." in caplog.text
    for refusing in ({"skip_bad_rows": False}, {"inputs": {"x": Feature((4, 2))}}):  # such a batch has to be full
        with pytest.raises(ArgumentError, match="row 1: column 'x' has 1 values"):
            list(read(path, replace(reading, **refusing)))


@pytest.mark.plugins
def test_a_row_has_one_number_whoever_refuses_it(tmp_path):
    """Rows count from 0, as in training, also in errors of array readers and of the signature."""
    parquet.write_table(pa.table({"x": pa.array([1.0, 2.0, None], pa.float32())}), tmp_path / "null.parquet")
    parquet.write_table(pa.table({"x": [[1.0, 2.0], [3.0, 4.0], [5.0]]}), tmp_path / "list.parquet")
    for name, shape in (("null.parquet", (None,)), ("list.parquet", (None, 2))):
        with pytest.raises(ec.EstimatorError, match=rf"{name}, row 2: column 'x'"):
            list(read(tmp_path / name, Reading(inputs={"x": Feature(shape)}, batch_size=4)))
    np.savez(tmp_path / "x.npz", x=np.arange(3.0))
    batches = list(read(tmp_path / "x.npz", Reading(inputs={"x": Feature((None,))}, batch_size=2)))

    def signature(x):
        if (x == 2).any():
            raise ArgumentError("x holds 2.0 in row 0: it is two.")
        return {"y": x}

    with pytest.raises(ArgumentError, match=r"x\.npz, row 2: x holds 2\.0: it is two"):
        list(score(signature, batches, batch_size=2, skip_bad_rows=False))


def test_arrays_hold_numbers_that_json_does_not_have(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"x": [["NaN", 1.5], [0, "-Infinity"]]}\n')
    inputs = {"x": Feature((None, 2, 2))}
    (batch,) = read(tmp_path / "rows.jsonl", Reading(inputs=inputs, batch_size=4))
    np.testing.assert_array_equal(batch.arrays["x"], [[[np.nan, 1.5], [0, -np.inf]]])
    (tmp_path / "rows.jsonl").write_text('{"x": [["NaN", 1.5], [0, "1"]]}\n')
    with pytest.raises(ArgumentError, match="line 1: column 'x' cannot be read as float32"):
        list(read(tmp_path / "rows.jsonl", Reading(inputs=inputs, batch_size=4)))
