"""Tests of `estimator predict` on files of any size: kinds of files, bad rows, output columns, memory."""

import bz2
import csv
import gzip
import importlib
import json
import lzma
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import optax
import pyarrow as pa
import pytest
from pyarrow import parquet

import estimator_core as ec
import estimator_inputs
from estimator_core._cli.main import main
from estimator_core.errors import ArgumentError
from estimator_exporters.scoring.columns import columns_of
from estimator_exporters.scoring.run import Job, score_files

pytestmark = pytest.mark.plugins
NAMES = ["a", "b"]


def model_fn(features, labels, mode):
    logits = (features["a"] * 2 + features["b"])[:, None] * np.array([[-1.0, 1.0]], np.float32)
    predictions = {"logits": logits, "double": features["a"] * 2}
    outputs = {"serving_default": ec.export.PredictOutput(predictions)}
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    bias = ec.get_variable("bias", (), lambda key, shape, dtype: np.zeros(shape, dtype))
    return ec.EstimatorSpec(mode, loss=bias**2, train_op=optax.sgd(0.0))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """An export of two numbers per row."""
    return exported(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def imputing(tmp_path_factory):
    """An export whose training replaced an empty `b` with 7 and skipped bad rows."""
    folder = tmp_path_factory.mktemp("imputing")
    (folder / "reading.json").write_text(json.dumps({"column_defaults": {"b": 7.0}, "on_error": "skip"}))
    return exported(folder, {"reading.json": str(folder / "reading.json")})


def exported(folder, assets=None):
    config = ec.RunConfig(model_dir=str(folder / "model"), tf_random_seed=1)
    batch = {name: np.ones(4, np.float32) for name in NAMES}
    estimator = ec.Estimator(model_fn, config=config).train(lambda: [batch], steps=1)
    receiver = ec.export.build_raw_serving_input_receiver_fn({name: ec.export.Feature((None,)) for name in NAMES})
    return estimator.export_saved_model(str(folder / "export"), receiver, assets_extra=assets)


def table(rows):
    return {"id": [f"r{n}" for n in range(rows)], "a": list(range(rows)), "b": [n / 4 for n in range(rows)]}


def write(path, content):
    lines = list(zip(*content.values(), strict=True))
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(content), path, row_group_size=5)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(content, line, strict=True))) + "\n" for line in lines))
    elif path.suffix == ".tfrecord":
        estimator_inputs.write_tfrecord(path, [record(a, b) for _, a, b in lines])
    else:
        text = "".join(",".join(map(str, line)) + "\n" for line in [tuple(content), *lines])
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def record(a, b):
    example = estimator_inputs.example_class()()
    example.features.feature["a"].float_list.value.append(a)
    example.features.feature["b"].float_list.value.append(b)
    return example.SerializeToString()


def read(path):
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pydict()
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        return {name: [row[name] for row in rows] for name in rows[0]}
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: [json.loads(row[name]) if name != "id" else row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("output", ["scores.csv", "scores.parquet", "scores.jsonl"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet", "rows.jsonl", "rows.tfrecord"])
def test_every_kind_of_file(plain, tmp_path, name, output):
    write(tmp_path / name, table(23))
    keep = () if "tfrecord" in name else ("id",)
    job = Job(export=plain, inputs=(str(tmp_path / name),), output=tmp_path / output, batch_size=8, keep=keep)
    assert score_files(job).rows == 23
    found = read(tmp_path / output)
    assert list(found) == [*keep, "double", "logits"]
    assert found["double"] == [2.0 * n for n in range(23)]
    assert found["logits"][1] == [-2.25, 2.25]
    assert not keep or found["id"] == [f"r{n}" for n in range(23)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, output])


def test_patterns_and_several_files_in_order(plain, tmp_path):
    for number, rows in enumerate((5, 3, 8)):
        write(tmp_path / f"part-{number}.csv", table(rows))
    write(tmp_path / "other.jsonl", table(2))
    files = (str(tmp_path / "part-*.csv"), str(tmp_path / "other.jsonl"))
    score_files(Job(export=plain, inputs=files, output=tmp_path / "out.parquet", batch_size=4))
    expected = [2.0 * n for rows in (5, 3, 8, 2) for n in range(rows)]
    assert read(tmp_path / "out.parquet")["double"] == expected


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("rows.csv", "a,b\n1,2\n3,x\n", 1, r"rows.csv, line 3: column 'b': 'x' is not of type float32"),
        ("rows.csv", "a,b\n1,2\n3,\n", 1, r"rows.csv, line 3: column 'b': no value"),
        ("rows.csv", "a,c\n1,2\n", 2, r"rows.csv lacks the columns \['b'\]. Its columns are: a, c"),
        (
            "rows.jsonl",
            '{"a": 1, "b": 2}\n{"a": 1, "b": "x"}\n',
            1,
            r"rows\.jsonl, line 2: column 'b': 'x' is not of type float32",
        ),
        ("rows.csv", "a,b\n", 2, "has no rows"),
        (
            "rows.csv",
            "a;b\n1;2\n",
            2,
            r"Its columns are: a;b\. Is another character between them\? Name it: --field-delim",
        ),
        ("rows.txt", "a,b\n", 2, "must end in .csv, .tsv, .parquet"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_left(plain, tmp_path, capsys, name, content, code, message):
    (tmp_path / name).write_text(content)
    (tmp_path / "out.csv").write_text("before")
    arguments = ["predict", plain, "--input", str(tmp_path / name), "--output", str(tmp_path / "out.csv")]
    assert main(arguments) == code
    assert re.search(message, capsys.readouterr().err)
    assert (tmp_path / "out.csv").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "out.csv"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("3,x", r"line 3: .*leave such rows out with --on-error skip"),
        ("3,", r"line 3: column 'b': no value, and training filled in none\b.* --on-error skip"),
    ],
)
def test_a_bad_row_is_told_with_the_options_of_the_command(plain, tmp_path, capsys, row, message):
    (tmp_path / "rows.csv").write_text(f"a,b\n1,2\n{row}\n")
    arguments = ["predict", plain, "--input", str(tmp_path / "rows.csv"), "--output", str(tmp_path / "out.csv")]
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert re.search(message, told)
    assert "on_error=" not in told
    assert "column_defaults" not in told
    assert main([*arguments, "--on-error", "skip"]) == 0


def test_an_input_is_never_written_over(plain, tmp_path, monkeypatch):
    """The output may not be the input: by its own name, by another name, or by a pattern that matches it."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows.csv", table(3))
    before = (tmp_path / "rows.csv").read_bytes()
    (tmp_path / "again.csv").symlink_to("rows.csv")
    for inputs, output in [
        ("rows.csv", "rows.csv"),
        ("rows.csv", str(tmp_path / "rows.csv")),
        ("rows.csv", "again.csv"),
        ("*.csv", "rows.csv"),
        ("*.csv", Path("rows.csv")),
    ]:
        with pytest.raises(ArgumentError, match="is also read as --input"):
            score_files(Job(export=str(plain), inputs=(inputs,), output=output))
    assert (tmp_path / "rows.csv").read_bytes() == before
    assert score_files(Job(export=str(plain), inputs=("rows.csv",), output="scores.csv")).rows == 3


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.jsonl"])
def test_rows_are_treated_as_in_training(imputing, plain, tmp_path, name):
    """An empty `b` is scored as 7 where training replaced it with 7. Otherwise the row is a bad row."""
    if name == "rows.csv":
        (tmp_path / name).write_text("a,b\n1,2\n3,\n")
    else:
        write(tmp_path / name, {"a": [1.0, 3.0], "b": [2.0, None]})
    output = tmp_path / "out.jsonl"
    score_files(Job(export=imputing, inputs=(str(tmp_path / name),), output=output))
    assert read(output)["logits"] == [[-4.0, 4.0], [-13.0, 13.0]]
    with pytest.raises(ec.EstimatorError, match="'b'"):
        score_files(Job(export=plain, inputs=(str(tmp_path / name),), output=output))


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.jsonl"])
def test_an_input_can_be_kept_too(imputing, tmp_path, name):
    write(tmp_path / name, table(5))
    job = Job(export=imputing, inputs=(str(tmp_path / name),), output=tmp_path / "out.csv", keep=("b", "id"))
    score_files(job)
    found = read(tmp_path / "out.csv")
    assert found["b"] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert found["id"] == ["r0", "r1", "r2", "r3", "r4"]
    assert found["logits"][4] == [-9.0, 9.0]


def test_bad_rows_are_left_out_where_training_left_them_out(imputing, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\nx,4\n3,4\n")
    job = Job(export=imputing, inputs=(str(tmp_path / "rows.csv"),), output=tmp_path / "out.csv")
    assert score_files(job).rows == 2
    with pytest.raises(ec.EstimatorError, match="line 3: column 'a': 'x' is not of type float32"):
        score_files(Job(export=imputing, inputs=job.inputs, output=job.output, on_error="raise"))


def test_a_row_that_the_signature_refuses_is_named():
    from estimator_exporters.scoring.batch import Batch
    from estimator_exporters.scoring.score import score

    def signature(x):
        if (x < 0).any():
            raise ArgumentError("x holds -1.0 in row 0: it is negative.")
        return {"y": x * 2}

    arrays = ([1, 2], [3, -4])
    batches = [Batch(Path("f.csv"), 2 * n, {"x": np.array(one)}, {}) for n, one in enumerate(arrays)]
    with pytest.raises(ArgumentError, match=r"f\.csv, row 3: x holds -1.0: it is negative"):
        list(score(signature, batches, batch_size=2, skip_bad_rows=False))
    found = list(score(signature, batches, batch_size=2, skip_bad_rows=True))
    assert [y for one in found for y in one.columns.get("y", [])] == [2, 4, 6]
    assert [one.refused for one in found if one.refused] == [("f.csv, row 3: x holds -1.0: it is negative.",)]


def test_a_signature_without_a_value_for_each_row_is_refused():
    from estimator_exporters.scoring.batch import Batch
    from estimator_exporters.scoring.score import score

    batches = [Batch(Path("f.csv"), 0, {"x": np.arange(3.0)}, {"id": np.arange(3)})]
    with pytest.raises(ArgumentError, match=r"returns no value for each row, but total \[\], pair \[2\] for 3 rows"):
        list(score(lambda x: {"total": x.sum(), "pair": x[:2]}, batches, batch_size=4, skip_bad_rows=False))


def test_one_column_a_class_and_the_predicted_class():
    outputs = {
        "probabilities": np.array([[0.2, 0.8], [0.9, 0.1]]),
        "classes": np.array([["dog"], ["cat"]], object),
        "all_classes": np.array([["cat", "dog"]] * 2, object),
        "all_class_ids": np.array([[0, 1]] * 2),
        "total": np.float32(3.0),
    }
    found = {name: column.tolist() for name, column in columns_of(outputs, 2).items()}
    assert found == {
        "probabilities_cat": [0.2, 0.9],
        "probabilities_dog": [0.8, 0.1],
        "classes": ["dog", "cat"],
    }


@pytest.fixture(scope="module")
def of_vectors(tmp_path_factory):
    """An export of three numbers per row, with an output that is not per row."""

    def vectors(features, labels, mode):
        weights = ec.get_variable("weights", (3,), lambda key, shape, dtype: np.ones(shape, dtype))
        predictions = {"y": features["x"] @ weights, "weights": weights}
        if mode == ec.ModeKeys.PREDICT:
            outputs = {"serving_default": ec.export.PredictOutput(predictions)}
            return ec.EstimatorSpec(mode, predictions={"y": predictions["y"]}, export_outputs=outputs)
        return ec.EstimatorSpec(mode, loss=predictions["y"].mean(), train_op=optax.sgd(0.0))

    folder = tmp_path_factory.mktemp("vectors")
    estimator = ec.Estimator(vectors, config=ec.RunConfig(model_dir=str(folder / "model"), tf_random_seed=1))
    estimator.train(lambda: [{"x": np.ones((2, 3), np.float32)}], steps=1)
    receiver = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3))})
    return estimator.export_saved_model(str(folder / "export"), receiver)


def vectors(rows):
    return {"id": list(range(rows)), "x": [[n, n, n] for n in range(rows)]}


@pytest.mark.parametrize(("rows", "batch_size"), [(2, 8), (3, 8), (4, 3), (5, 4)])
@pytest.mark.parametrize("output", ["out.csv", "out.npz", "out.jsonl"])
def test_an_output_that_is_not_by_row_is_left_out_however_long_it_is(of_vectors, tmp_path, rows, batch_size, output):
    write(tmp_path / "rows.jsonl", vectors(rows))
    job = Job(export=of_vectors, inputs=(str(tmp_path / "rows.jsonl"),), output=tmp_path / output)
    assert score_files(replace(job, batch_size=batch_size)).rows == rows
    found = dict(np.load(tmp_path / output)) if output == "out.npz" else read(tmp_path / output)
    assert {name: list(column) for name, column in found.items()} == {"y": [3.0 * n for n in range(rows)]}


def test_json_lines_are_strict_json_where_a_score_is_not_finite(of_vectors, tmp_path):
    def refuse(literal):
        raise AssertionError(f"{literal} is not JSON")

    write(tmp_path / "rows.jsonl", {"x": [[3e38, 3e38, 0], [-3e38, -3e38, 0], [1, 1, 1]]})
    score_files(Job(export=of_vectors, inputs=(str(tmp_path / "rows.jsonl"),), output=tmp_path / "out.jsonl"))
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=refuse)["y"] for line in lines] == ["Infinity", "-Infinity", 3.0]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
def test_a_column_with_the_name_of_a_score_is_not_replaced(plain, tmp_path, name):
    write(tmp_path / name, table(3) | {"double": [-1.0] * 3})
    job = Job(export=plain, inputs=(str(tmp_path / name),), output=tmp_path / "out.csv", keep=("id", "double"))
    for on_error in ("raise", "skip"):
        with pytest.raises(ArgumentError, match="--keep double: a score has that name too"):
            score_files(replace(job, on_error=on_error))
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("given", ["plain", "of_vectors"])
def test_numbers_of_json_lines_are_kept_as_text(request, tmp_path, given, packed):
    content = {"id": [2**60 + 1, None, -3], "at": [0.1, 2, None], "new": [True, False, True], "on": [None, "a", "b"]}
    rows = table(3) if given == "plain" else vectors(3)
    write(tmp_path / "rows.jsonl", rows | content)
    path = tmp_path / f"rows.jsonl{packed}"
    if packed:
        path.write_bytes(gzip.compress((tmp_path / "rows.jsonl").read_bytes()))
    export = request.getfixturevalue(given)
    score_files(Job(export=export, inputs=(str(path),), output=tmp_path / "out.parquet", keep=tuple(content)))
    found = read(tmp_path / "out.parquet")
    assert found["id"] == [str(2**60 + 1), "", "-3"]
    assert [float(text or "nan") for text in found["at"][:2]] == [0.1, 2.0]
    assert (found["at"][2], found["new"], found["on"]) == ("", ["true", "false", "true"], ["", "a", "b"])


def test_a_column_to_keep_that_no_row_has_is_refused(of_vectors, plain, tmp_path):
    for export, rows in ((of_vectors, vectors(3)), (plain, table(3))):
        write(tmp_path / "rows.jsonl", rows)
        inputs = (str(tmp_path / "rows.jsonl"),)
        with pytest.raises(ArgumentError, match="idd"):
            score_files(Job(export=export, inputs=inputs, output=tmp_path / "out.csv", keep=("idd",)))
        assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("empty", ["1.jsonl", "1.csv"])
def test_an_empty_part_lacks_no_column_to_keep(of_vectors, tmp_path, empty):
    write(tmp_path / "0.jsonl", vectors(3))
    (tmp_path / empty).write_text("x,id\n" if empty.endswith("csv") else "")
    inputs = (str(tmp_path / "0.jsonl"), str(tmp_path / empty))
    score_files(Job(export=of_vectors, inputs=inputs, output=tmp_path / "out.csv", keep=("id",)))
    assert len(read(tmp_path / "out.csv")["id"]) == 3


def written(path, text, encoding="utf-8-sig"):
    packers = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    content = text.encode(encoding)
    if path.suffix in (".zst", ".lz4"):
        with pa.output_stream(str(path), compression={".zst": "zstd", ".lz4": "lz4"}[path.suffix]) as file:
            file.write(content)
    else:
        path.write_bytes(packers.get(path.suffix, bytes)(content))
    return path


@pytest.mark.parametrize("packed", ["", ".gz", ".bz2", ".xz", ".zst", ".lz4"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_with_arrays_may_be_packed_and_begin_with_a_byte_order_mark(of_vectors, tmp_path, kind, packed):
    long = "[1," + " " * 200_000 + "2,3]"  # longer than the default field limit of the csv module
    text = (
        f'x,id\n"[1,2,3]",a\n"{long}",b\n' if kind == "csv" else f'{{"x":[1,2,3],"id":"a"}}\n{{"x":{long},"id":"b"}}\n'
    )
    path = written(tmp_path / f"rows.{kind}{packed}", text)
    score_files(Job(export=of_vectors, inputs=(str(path),), output=tmp_path / "out.csv", keep=("id",)))
    assert read(tmp_path / "out.csv") == {"id": ["a", "b"], "y": [6, 6]}


def test_a_packed_file_that_is_cut_is_named(of_vectors, tmp_path):
    path = written(tmp_path / "rows.jsonl.gz", "".join(f'{{"x":[{n},2,3]}}\n' for n in range(5000)))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ArgumentError, match=r"rows\.jsonl\.gz cannot be read: "):
        score_files(Job(export=of_vectors, inputs=(str(path),), output=tmp_path / "out.csv"))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(plain, tmp_path):
    """Ten times the rows, in separate processes. All rows at once would need 160 MB more."""
    program = (
        "import resource, sys; from estimator_core._cli.main import main; code = main(sys.argv[1:]); "
        "print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024); sys.exit(code)"
    )
    peaks = []
    for rows in (200_000, 2_000_000):
        path = tmp_path / f"{rows}.parquet"
        numbers = np.arange(rows, dtype=np.float64)
        parquet.write_table(pa.table(dict.fromkeys([*NAMES, *"cdefgh"], numbers)), path)
        arguments = ["predict", plain, "--input", str(path), "--output", str(tmp_path / "out.parquet"), "--keep", "c,d"]
        found = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
        peaks.append(int(found.stdout.split()[-1]))
    assert peaks[1] < peaks[0] + 60, peaks


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "no file matches ''"),
        (".", r"\. is a directory: name the files in it, such as '\*'"),
        ("/", r"/ is a directory: name the files in it, such as '/\*'"),
    ],
)
def test_an_input_without_a_name_is_refused(pattern, message):
    from estimator_exporters.scoring.locations import locations_of
    from estimator_exporters.scoring.read import find

    for refused in (find, locations_of):
        with pytest.raises(ArgumentError, match=f"--input: {message}"):
            refused([pattern])


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.jsonl"])
def test_a_column_to_keep_that_is_missing_is_not_told_as_an_input(plain, tmp_path, name):
    write(tmp_path / name, table(3))
    job = Job(export=plain, inputs=(str(tmp_path / name),), output=tmp_path / "out.csv", keep=("idd",))
    with pytest.raises(ArgumentError) as refused:
        score_files(job)
    told = str(refused.value)
    assert told == (f"--keep: {tmp_path / name} has no column 'idd'. Its columns are: id, a, b. Correct the name.")


def test_a_column_of_a_dataset_of_ray_is_never_replaced_by_a_score(plain, monkeypatch):
    """The scorer uses nothing of Ray, so an empty module replaces it."""
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    monkeypatch.setitem(sys.modules, "ray.data", ModuleType("ray.data"))
    monkeypatch.delitem(sys.modules, "estimator_exporters.scoring.on_ray", raising=False)
    scorer = importlib.import_module("estimator_exporters.scoring.on_ray").RayScorer(plain)
    batch = {name: np.ones(4, np.float32) for name in NAMES}
    assert list(scorer({**batch, "id": np.arange(4)})) == ["a", "b", "id", "double", "logits"]
    with pytest.raises(ArgumentError, match=r"has the columns \['double'\], and scores have these names"):
        scorer({**batch, "double": np.arange(4)})


@pytest.mark.parametrize("delimiter", ["", "; ", "\n", '"', "\xa7"])
def test_a_character_between_columns_that_cannot_be_is_refused(plain, tmp_path, capsys, delimiter):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    files = ["--input", str(tmp_path / "rows.csv"), "--output", str(tmp_path / "out.csv")]
    assert main(["predict", plain, *files, f"--field-delim={delimiter}"]) == 2
    assert "--field-delim must be one ASCII character other than a quote or a line end" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_keys_of_json_lines_that_no_input_reads_may_hold_anything(plain, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"a": 1, "b": 2, "m": 1}\n{"a": "NaN", "b": 4, "m": "x"}\n')
    job = Job(export=plain, inputs=(str(tmp_path / "rows.jsonl"),), output=tmp_path / "out.jsonl")
    assert score_files(job).rows == 2
    written = [json.loads(line)["double"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert written == [2.0, "NaN"]
