"""Tests of `estimator inputs inspect`: schema, statistics and rows of every kind of file."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_core._cli.main import main
from estimator_core.errors import InputError
from estimator_inputs import write_tfrecord
from estimator_inputs.inspect.detect import kind_of
from estimator_inputs.inspect.histogram import histogram_of, line_of
from estimator_inputs.inspect.report import as_json, inspect_files
from estimator_inputs.statistics.gather import gather
from plugins.inputs.tests.test_statistics import forms, titanic_like
from plugins.inputs.tests.written import WRITERS, example, some_rows, write_csv, write_files


@pytest.mark.parametrize("kind", list(WRITERS))
def test_statistics(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = some_rows(500)
    pattern = write_files(tmp_path, kind, rows, 2)
    assert main(["inputs", "inspect", pattern, "--json", "--rows", "2"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["files"], report["rows"], report["all_rows"]) == (kind, 2, 500, True)
    columns: dict[str, Any] = report["columns"]
    assert set(columns) == set(rows)
    weight = columns["weight"]
    assert weight["type"] == "float32"
    assert weight["mean"] == pytest.approx(float(rows["weight"].mean()), rel=1e-5)
    assert weight["deviation"] == pytest.approx(float(rows["weight"].std()), rel=1e-4)
    assert weight["quantiles"]["0.25"] == pytest.approx(float(np.quantile(rows["weight"], 0.25)), rel=1e-5)
    assert (columns["id"]["minimum"], columns["id"]["maximum"]) == (0, 499)
    assert columns["word"]["different"] == 6
    assert columns["word"]["missing"] == int((rows["word"] == b"").sum())
    assert report["first"]["id"] == [0, 1]
    assert report["first"]["word"] == [word.decode() or None for word in rows["word"][:2]]


def test_numbers_that_are_not_finite_are_texts_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(name: str) -> Any:
        raise AssertionError(f"{name} is not JSON")

    (tmp_path / "rows.csv").write_text("x\n1.5\ninf\n-inf\n1e308\n-1.7e308\n")
    assert main(["inputs", "inspect", str(tmp_path / "rows.csv"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out, parse_constant=refused)
    assert report["first"]["x"][:3] == [1.5, "Infinity", "-Infinity"]
    facts = report["columns"]["x"]
    assert (facts["minimum"], facts["maximum"], facts["infinite"]) == ("-Infinity", "Infinity", 2)
    assert facts["deviation"] == pytest.approx(float(np.std([0.0, 1.0, -1.7])) * 1e308)
    page = tmp_path / "page.html"
    assert main(["inputs", "inspect", str(tmp_path / "rows.csv"), "--html", str(page)]) == 0
    assert "1e+308" in page.read_text()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_rows_with_an_empty_cell_count_in_all_other_columns(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = titanic_like(891)
    forms(frame, tmp_path)
    path = str(tmp_path / f"rows.{suffix}")
    assert main(["inputs", "inspect", path, "--rows", "0"]) == 0
    text = capsys.readouterr().out
    assert "all 891 rows\n" in text
    lines = {line.split()[0]: line for line in text.splitlines()[2:]}
    missing = int(frame["age"].isna().sum())
    assert f"{missing} missing ({missing / 891:.1%})" in lines["age"]
    assert "1 to 891, mean 446," in lines["id"]
    assert f"mean {frame['fare'].mean():.6g}" in lines["fare"]


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_csv(tmp_path / "rows.csv", some_rows(30))
    with path.open("a") as file:
        file.write("x,y\n")
    assert main(["inputs", "inspect", str(path), "--rows", "1"]) == 0
    text = capsys.readouterr().out
    assert "csv, 1 file(s)" in text
    assert "all 30 rows, not counting 1 bad ones" in text
    assert re.search(rf"bad: {path}, line \d+: 2 fields, fewer than the 5 columns", text)
    (line,) = [line for line in text.splitlines() if line.startswith("id ")][:1]
    assert line.split() == ["id", "int64", "-", "30", "██"][:4] + line.split()[4:]
    assert "0 to 29, mean 14.5, deviation 8.655, quartiles 7.25 14.5 21.75" in line
    assert main(["inputs", "inspect", str(path), "--limit", "10", "--rows", "0"]) == 0
    assert "the first 10 rows" in capsys.readouterr().out
    assert main(["inputs", "inspect", str(path), "--limit", "10", "--rows", "0", "--all"]) == 0
    assert "all 30 rows" in capsys.readouterr().out


def test_the_page_names_every_column_and_escapes_what_files_hold(tmp_path: Path) -> None:
    frame = titanic_like(300)
    frame["<b>"] = "<script>alert(1)</script>"
    frame.to_csv(tmp_path / "rows.csv", index=False)
    page = tmp_path / "page.html"
    assert main(["inputs", "inspect", str(tmp_path / "rows.csv"), "--html", str(page)]) == 0
    text = page.read_text()
    parsed = ElementTree.fromstring(re.sub(r"<(!doctype html|meta[^>]*)>", "", text))
    assert [heading.text.strip() for heading in parsed.iter("h2")] == list(frame.columns)
    assert len(list(parsed.iter("svg"))) == len(frame.columns)
    assert sum(1 for _ in parsed.iter("rect")) > 50
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_histograms() -> None:
    columns = gather(
        {"few": [1.0, 1.0, 5.0], "many": np.arange(400.0), "w": ["a", "b", "a"] * 100 + [str(k) for k in range(100)]}
        | {"few": np.array([1.0, 1.0, 5.0, 5.0] * 100), "none": np.full(400, np.nan), "inf": np.full(400, np.inf)}
    ).columns
    assert histogram_of(columns["few"]) == [("1", 0.5), ("5", 0.5)]
    many = histogram_of(columns["many"], parts=4)
    assert [round(bar.share, 2) for bar in many] == [0.25, 0.25, 0.25, 0.25]
    words = histogram_of(columns["w"], parts=3)
    assert [bar.name for bar in words] == ["a", "b", "others"]
    assert [bar.share for bar in words] == pytest.approx([0.5, 0.25, 0.25])
    assert histogram_of(columns["none"]) == []
    assert [bar.share for bar in histogram_of(columns["inf"])] == [1.0]
    assert line_of(histogram_of(columns["few"])) == "\u2588\u2588"


def test_features_of_any_length_are_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    write_tfrecord(path, [example({"a": np.arange(k % 3 + 1), "b": np.array([1.5, 2.5])}) for k in range(9)])
    report = inspect_files(path)
    columns = as_json(report)["columns"]
    assert columns["a"]["shape"] == ["*"]
    assert (columns["a"]["values"], columns["a"]["values_in_a_row"]) == (18, [1, 3])
    assert columns["b"]["shape"] == [2]
    assert report.first["a"][:3] == [[0], [0, 1], [0, 1, 2]]


def test_items_without_a_value_keep_their_place_in_a_list(tmp_path: Path) -> None:
    """They were left out, so that the rest of a row had other places."""
    import pyarrow as pa
    import pyarrow.parquet

    sized = pa.list_(pa.float64(), 2)
    columns = {
        "any": pa.array([[np.nan, None, 1.5], None, [], [2.5]]),
        "words": pa.array([["", "a"], [None], None, ["b", ""]]),
        "pair": pa.array([[1, None], [3, 4], [None, 6], [np.nan, np.nan]], sized),
        "matrix": pa.array(
            [[[1, None], [3, 4]], [[5, 6], [7, 8]], [[None, 1], [1, 1]], [[0, 0]] * 2], pa.list_(sized, 2)
        ),
    }
    pa.parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=3)
    first = inspect_files(tmp_path / "rows.parquet").first
    assert first["any"] == [[None, None, 1.5], [], [], [2.5]]
    assert first["words"] == [[None, "a"], [None], [], ["b", None]]
    assert first["pair"] == [[1, None], [3, 4], [None, 6], [None, None]]
    assert first["matrix"] == [[1, None, 3, 4], [5, 6, 7, 8], [None, 1, 1, 1], [0] * 4]


@pytest.mark.parametrize("kind", list(WRITERS))
def test_kinds_are_told_by_the_first_bytes(tmp_path: Path, kind: str) -> None:
    pattern = write_files(tmp_path, kind, some_rows(5), 1)
    shutil.copy(pattern.replace("*", "0"), tmp_path / "unnamed")
    assert kind_of(tmp_path / "unnamed") == kind


def test_an_array_of_json_is_no_csv(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('[\n {"x": 1}\n]\n')
    with pytest.raises(InputError, match="it holds a JSON array"):
        inspect_files(tmp_path / "rows.json")


def test_an_empty_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nothing").touch()
    with pytest.raises(InputError, match="is empty"):
        inspect_files(tmp_path / "nothing")
    assert main(["inputs", "inspect", str(tmp_path / "nothing")]) == 1
    assert "nothing is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.csv", "a;b\n1,5;2\n", "--field-delim ';'"),
        ("a.csv", "a\tb\n1\t2\n", "--field-delim $'\\t'"),
        ("a.tsv", "a,b\n1,2\n", "--field-delim ','"),
        ("a.csv", "a,b;c\n1,2\n", None),
        ("a.csv", "text\nhello; you\n", None),
    ],
)
def test_a_file_of_one_column_names_the_option_for_others(
    tmp_path: Path, name: str, text: str, told: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / name).write_text(text)
    assert main(["inputs", "inspect", str(tmp_path / name)]) == 0
    assert caplog.text.count("--field-delim") == (told is not None)
    assert told is None or told in caplog.text
    caplog.clear()
    assert main(["inputs", "inspect", str(tmp_path / name), "--field-delim", ";"]) == 0
    assert not caplog.text.count("--field-delim")
