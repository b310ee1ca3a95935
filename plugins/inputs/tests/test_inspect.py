"""`estimator inputs inspect`: schema, statistics and rows of every kind of file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_core._cli.main import main
from estimator_core.errors import InputError
from estimator_inputs import write_tfrecord
from estimator_inputs.inspect.detect import kind_of
from estimator_inputs.inspect.report import inspect_files
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
    assert (columns["id"]["min"], columns["id"]["max"]) == (0, 499)
    assert columns["word"]["distinct"] == 7
    assert columns["word"]["empty"] == int((rows["word"] == b"").sum())
    assert report["first"]["id"] == [0, 1]
    assert report["first"]["word"] == [word.decode() for word in rows["word"][:2]]


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_csv(tmp_path / "rows.csv", some_rows(30))
    with path.open("a") as file:
        file.write("x,y\n")
    assert main(["inputs", "inspect", str(path), "--rows", "1"]) == 0
    text = capsys.readouterr().out
    assert "csv, 1 file(s)" in text
    assert "all 30 rows, beside 1 bad ones" in text
    assert "id      int64    0 to 29, mean 14.5" in text
    assert main(["inputs", "inspect", str(path), "--limit", "10", "--rows", "0"]) == 0
    assert "the first 10 rows" in capsys.readouterr().out


def test_features_of_any_length_are_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    write_tfrecord(path, [example({"a": np.arange(k % 3 + 1), "b": np.array([1.5, 2.5])}) for k in range(9)])
    report = inspect_files(path)
    assert report.columns["a"]["shape"] == ["*"]
    assert report.columns["a"]["values"] == 18
    assert report.columns["b"]["shape"] == [2]
    assert report.first["a"][:3] == [[0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize("kind", list(WRITERS))
def test_kinds_are_told_by_the_first_bytes(tmp_path: Path, kind: str) -> None:
    pattern = write_files(tmp_path, kind, some_rows(5), 1)
    shutil.copy(pattern.replace("*", "0"), tmp_path / "unnamed")
    assert kind_of(tmp_path / "unnamed") == kind


def test_an_empty_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nothing").touch()
    with pytest.raises(InputError, match="is empty"):
        inspect_files(tmp_path / "nothing")
    assert main(["inputs", "inspect", str(tmp_path / "nothing")]) == 1
    assert "nothing is empty" in capsys.readouterr().err
