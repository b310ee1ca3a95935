"""`estimator tabular train`: every step, and what is refused at the start."""

import csv
import json

import numpy as np
import pytest

from estimator_core.cli.main import main

HEADER = ["name", "age", "city", "hours", "income"]


def write(path, count, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        age, city, hours = rng.normal(40, 12), rng.choice(["Rome", "Oslo", "Lima"]), rng.integers(10, 60)
        score = (age - 40) / 12 + (city == "Oslo") * 2 - 1 + rng.normal(0, 0.2)
        empty = rng.random() < 0.05
        rows.append([f"n{number}", "" if empty else f"{age:.1f}", city, hours, "high" if score > 0 else "low"])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])
    return rows


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    write(path, 300, 0)
    return path


def command(people, tmp_path, *more):
    arguments = ["--csv", people, "--label", "income", "--model-dir", tmp_path / "model", *more]
    return main(["tabular", "train", *map(str, arguments)])


@pytest.mark.plugins
def test_train_evaluate_export_predict(people, tmp_path, capsys):
    quick = ["--hidden-units", "16", "--epochs", "15", "--batch-size", "32", "--learning-rate", "0.01"]
    assert command(people, tmp_path, *quick) == 0
    output = capsys.readouterr().out
    accuracy = next(line for line in output.splitlines() if line.strip().startswith("accuracy ="))
    assert float(accuracy.split("=")[1]) > 0.8
    columns = json.loads((tmp_path / "model" / "columns.json").read_text())
    assert {name: column["kind"] for name, column in columns["columns"].items()} == {
        "name": "skip",
        "age": "numeric",
        "city": "vocabulary",
        "hours": "numeric",
    }
    assert columns["classes"] == ["high", "low"]
    rows = tmp_path / "rows.csv"
    rows.write_text("age,city,hours\n70,Oslo,30\n20,Rome,30\n")
    scores = tmp_path / "scores.jsonl"
    exported = tmp_path / "model" / "export"
    assert (
        main(["predict", str(exported), "--input", str(rows), "--output", str(scores), "--signature", "predict"]) == 0
    )
    found = [json.loads(line)["classes"] for line in scores.read_text().splitlines()]
    assert found == [["high"], ["low"]]


def test_a_linear_model_of_edited_columns(people, tmp_path, capsys):
    more = ["--model", "linear", "--no-export", "--no-plots", "--epochs", "1"]
    assert command(people, tmp_path, *more) == 0
    path = tmp_path / "model" / "columns.json"
    columns = json.loads(path.read_text())
    columns["columns"]["city"] = {"kind": "hash", "buckets": 10}
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(columns))
    capsys.readouterr()
    arguments = ["--csv", people, "--label", "income", "--model-dir", tmp_path / "other", "--columns", edited, *more]
    assert main(["tabular", "train", *map(str, arguments)]) == 0
    assert "(as given)" in capsys.readouterr().out
    assert json.loads((tmp_path / "other" / "columns.json").read_text())["columns"]["city"]["buckets"] == 10


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        (lambda text: text, ["--label", "wage"], "There is no column 'wage'. Columns: name, age, city, hours, income"),
        (lambda text: text.replace("\nn7,", "\nn7,extra,"), [], "people.csv, line 9: 6 fields, and the header names 5"),
        (lambda text: HEADER[0] + "\n", [], "has no rows"),
        (lambda text: text.replace("name,age", "age,age"), [], "line 1: it must name the columns, each once"),
        (lambda text: text + "x,1,Oslo,3,\n", [], "The label 'income' is empty in 1 rows"),
        (lambda text: text, ["--columns", "{tmp}/none.json"], "none.json cannot be read"),
        (lambda text: text, ["--hidden-units", "a"], "--hidden-units should be integers"),
        (lambda text: text, ["--epochs", "0"], "--epochs should be positive"),
    ],
)
def test_wrong_inputs_are_refused_at_the_start(people, tmp_path, capsys, change, more, message):
    people.write_text(change(people.read_text()))
    assert command(people, tmp_path, *(argument.format(tmp=tmp_path) for argument in more)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "model" / "checkpoints").exists()


def test_a_number_that_is_none(people, tmp_path, capsys):
    assert command(people, tmp_path, "--model", "linear", "--no-export", "--no-plots", "--epochs", "1") == 0
    lines = people.read_text().splitlines()
    lines[3] = "x,forty,Oslo,3,low"
    people.write_text("\n".join(lines) + "\n")
    assert command(people, tmp_path, "--model", "linear") == 1
    assert "people.csv, row 3, column 'age': 'forty' is no number" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("model", ["dnn", "dcn", "baseline"])
def test_other_models_and_a_number_to_predict(tmp_path, capsys, model):
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    path = tmp_path / "line.csv"
    path.write_text("x,y\n" + "".join(f"{a:.4f},{3 * a + 1:.4f}\n" for a in x))
    more = ["--model", model, "--epochs", "40", "--learning-rate", "0.01", "--hidden-units", "16"]
    arguments = ["--csv", path, "--label", "y", "--model-dir", tmp_path / "model", *more]
    assert main(["tabular", "train", *map(str, arguments), *(["--no-export"] if model == "baseline" else [])]) == 0
    loss = next(line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("average_loss"))
    assert float(loss.split("=")[1]) < (20.0 if model == "baseline" else 0.2)
