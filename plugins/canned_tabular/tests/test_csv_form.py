"""Tests of `--na-values` and `--field-delim`: CSV files as other programs write them."""

import argparse
import csv
import json

import numpy as np
import pytest

from estimator_canned_tabular.cli.csv_form import CsvForm
from estimator_canned_tabular.cli.tabular import configure
from estimator_core._cli.main import main

QUICK = ["--model", "linear", "--epochs", "1", "--patience", "0", "--no-plots"]


def rows_with(nothing: list[str], count: int = 120) -> list[list[str]]:
    """Rows with two columns of numbers and one of words. Every sixth number is a text that means "no value"."""
    rng = np.random.default_rng(3)
    rows = []
    for index in range(count):
        age = f"{rng.normal(40, 12):.2f}" if index % 6 else nothing[index // 6 % len(nothing)]
        rows.append([age, f"{rng.normal(3, 1):.3f}", str(rng.choice(["Rome", "Oslo", nothing[0]])), "yn"[index % 2]])
    return rows


def written(path, rows, delimiter=","):
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([["age", "hours", "city", "paid"], *rows])
    return path


def train(path, model_dir, *more):
    return main(["tabular", "train", "--csv", str(path), "--label", "paid", "--model-dir", str(model_dir), *more])


def columns_of(model_dir):
    return json.loads((model_dir / "columns.json").read_text())["columns"]


def test_texts_of_no_value_are_read_as_empty_fields(tmp_path, capsys):
    texts = ["NA", "?", "-999"]
    marked = written(tmp_path / "marked.csv", rows_with(texts))
    empty = written(tmp_path / "empty.csv", [["" if one in texts else one for one in row] for row in rows_with(texts)])
    given = ["--na-values", ",".join(texts)]
    assert train(marked, tmp_path / "marked", *QUICK, "--no-export", *given) == 0
    told = capsys.readouterr().out
    assert "read as words" not in told
    assert " '--na-values=NA,?,-999' " in told  # the line that repeats the run
    assert train(empty, tmp_path / "empty", *QUICK, "--no-export") == 0
    assert columns_of(tmp_path / "marked") == columns_of(tmp_path / "empty")
    assert columns_of(tmp_path / "marked")["age"]["kind"] == "numeric"
    assert columns_of(tmp_path / "marked")["city"]["words"] == ["Oslo", "Rome"]
    same = [line for line in told.splitlines() if "=" in line and "repeat" not in line]
    assert same == [line for line in capsys.readouterr().out.splitlines() if "=" in line and "repeat" not in line]


@pytest.mark.plugins
def test_predict_reads_them_as_training_did(tmp_path, capsys):
    texts = ["NA", "?"]
    marked = written(tmp_path / "marked.csv", rows_with(texts))
    empty = written(tmp_path / "empty.csv", [["" if one in texts else one for one in row] for row in rows_with(texts)])
    assert train(marked, tmp_path / "model", *QUICK, "--na-values", ",".join(texts)) == 0
    scored = []
    for path in (marked, empty):
        output = path.with_suffix(".jsonl")
        assert main(["predict", str(tmp_path / "model" / "export"), "--input", str(path), "--output", str(output)]) == 0
        scored.append(output.read_text())
    assert scored[0] == scored[1]
    assert scored[0].count("\n") == 120
    other = written(tmp_path / "other.csv", [["none", "1.0", "Rome", "y"]])
    assert main(["predict", str(tmp_path / "model" / "export"), "--input", str(other), "--output", str(output)]) != 0
    assert "'none'" in capsys.readouterr().err


def test_a_column_of_almost_only_numbers_names_the_option(tmp_path, capsys):
    marked = written(tmp_path / "marked.csv", rows_with(["not known"]))
    assert train(marked, tmp_path / "model", *QUICK, "--no-export") == 0
    assert "age, of which 100 of 120 values are numbers; the others: 'not known'. If they mean no " in (
        told := capsys.readouterr().out
    )
    assert "'--na-values=not known'. Otherwise write numbers" in told


def test_parquet_has_a_null_of_its_own(tmp_path, capsys):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table({"age": [1.0] * 20, "paid": ["y", "n"] * 10}), path)
    assert train(path, tmp_path / "model", *QUICK, "--no-export", "--na-values", "NA") != 0
    assert "--na-values is for CSV, but " in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


@pytest.mark.plugins
@pytest.mark.parametrize(("name", "given"), [("rows.csv", [";"]), ("rows.csv", ["\t"]), ("rows.tsv", [])])
def test_another_character_between_columns(tmp_path, capsys, name, given):
    delimiter = given[0] if given else "\t"
    options = ["--field-delim", *given] if given else []
    other = written(tmp_path / name, rows_with([""]), delimiter)
    commas = written(tmp_path / "commas.csv", rows_with([""]))
    assert train(commas, tmp_path / "commas", *QUICK) == 0
    assert train(other, tmp_path / "other", *QUICK, *options) == 0
    assert columns_of(tmp_path / "other") == columns_of(tmp_path / "commas")
    scored = []
    # Scored as in training without an option, and as the option says.
    for model, path, more in (
        ("commas", commas, []),
        ("other", other, []),
        ("other", commas, ["--field-delim", ","]),
        ("commas", other, ["--field-delim", delimiter]),
    ):
        output = tmp_path / "scores.jsonl"
        exported = str(tmp_path / model / "export")
        assert main(["predict", exported, "--input", str(path), "--output", str(output), "--keep", "age", *more]) == 0
        scored.append(output.read_text())
    assert scored[1:] == scored[:1] * 3


@pytest.mark.parametrize("delimiter", ["; ", "", "\n", '"', "\xa7"])
def test_a_delimiter_is_one_character(tmp_path, capsys, delimiter):
    rows = written(tmp_path / "rows.csv", rows_with([""]))
    assert train(rows, tmp_path / "model", *QUICK, f"--field-delim={delimiter}") == 2
    assert (
        "--field-delim must be one ASCII character other than a quote or a line end, given: " in capsys.readouterr().err
    )
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("delimiter", "given"), [(",", ["--field-delim", ";"]), (";", [])])
def test_the_right_delimiter_is_named(tmp_path, capsys, delimiter, given):
    rows = written(tmp_path / "rows.csv", rows_with([""]), delimiter)
    assert train(rows, tmp_path / "model", *QUICK, *given) == 2
    told = capsys.readouterr().err
    assert f"there is no column 'paid'. Columns: age{delimiter}hours" in told
    assert f"Its columns are separated by '{delimiter}': --field-delim '{delimiter}'." in told


def test_quoted_fields_may_mean_no_value(tmp_path, capsys):
    """`csv.QUOTE_ALL` quotes texts that mean "no value", and empty numbers."""
    found = []
    for name, nothing, given in (("empty", "", []), ("marked", "-999", ["--na-values=-999"])):
        path = tmp_path / f"{name}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["age", "hours", "city", "paid"], *rows_with([nothing])])
        assert train(path, tmp_path / name, *QUICK, "--no-export", *given) == 0
        assert "read as words" not in capsys.readouterr().out
        found.append(columns_of(tmp_path / name))
    assert found[0] == found[1]
    assert found[0]["age"]["kind"] == "numeric"


def test_a_training_is_continued_with_the_texts_that_it_began_with(tmp_path, capsys):
    marked = written(tmp_path / "marked.csv", rows_with(["-999"]))
    longer = [*QUICK[:2], "--epochs", "2", *QUICK[4:], "--no-export"]
    assert train(marked, tmp_path / "model", *QUICK, "--no-export", "--na-values=-999") == 0
    assert train(marked, tmp_path / "model", *longer) == 2
    assert "model began with --na-values=-999. Other --na-values would change its numbers" in capsys.readouterr().err
    assert train(marked, tmp_path / "model", *longer, "--na-values=-999") == 0
    assert train(marked, tmp_path / "other", *QUICK, "--no-export") == 0
    assert train(marked, tmp_path / "other", *longer, "--na-values=-999") == 2
    assert "other began with no --na-values. Other --na-values would" in capsys.readouterr().err


@pytest.mark.parametrize("texts", [("--",), ("-inf.", "?"), ("---",)])
def test_the_option_as_it_is_told_is_taken(texts):
    parser = argparse.ArgumentParser()
    configure(parser)
    told = CsvForm(na_values=texts).told
    args = parser.parse_args(["train", "--csv", "x.csv", "--label", "y", "--model-dir", "m", *told])
    assert CsvForm.of(args).na_values == texts
