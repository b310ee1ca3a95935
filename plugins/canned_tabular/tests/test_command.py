"""Tests of `estimator tabular train`: every step, and the arguments and files that are refused at the start."""

import csv
import json
import re
import shlex
import sys
from dataclasses import asdict

import numpy as np
import pytest

from estimator_canned_tabular.cli.described import described
from estimator_canned_tabular.cli.profile import ColumnProfile
from estimator_canned_tabular.cli.schema import ColumnSchema, Schema
from estimator_core._cli.main import main
from estimator_core.checkpoint import load_variables
from estimator_core.errors import ArgumentError

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
    quick = [
        "--hidden-units",
        "16",
        "--epochs",
        "15",
        "--batch-size",
        "32",
        "--learning-rate",
        "0.01",
        "--no-baselines",
    ]
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
    assert found == ["high", "low"]
    scored = tmp_path / "scored.csv"
    keep = ["--keep", "name", "--batch-size", "64"]
    assert main(["predict", str(exported), "--input", str(people), "--output", str(scored), *keep]) == 0
    with scored.open() as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == ["name", "scores_high", "scores_low", "classes"]
    assert [row["name"] for row in table] == [f"n{number}" for number in range(300)]  # the ones without an age, too
    income = [line.rsplit(",", 1)[1] for line in people.read_text().splitlines()[1:]]
    assert np.mean([row["classes"] == wanted for row, wanted in zip(table, income, strict=True)]) > 0.8


@pytest.mark.slow
def test_a_linear_model_of_edited_columns(people, tmp_path, capsys):
    more = ["--model", "linear", "--no-export", "--no-plots", "--epochs", "1", "--patience", "0"]
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


COLUMNS = {
    "label": "income",
    "classes": ["high", "low"],
    "columns": {"age": {"kind": "numeric", "mean": 40.0, "scale": 12.0}},
}


@pytest.mark.parametrize(
    ("change", "more", "code", "message"),
    [
        (
            lambda text: text,
            ["--label", "wage"],
            2,
            "there is no column 'wage'. Columns: name, age, city, hours, income",
        ),
        (
            lambda text: text.replace("\nn7,", "\nn7,extra,"),
            [],
            1,
            "people.csv, line 9: 6 fields, more than the 5 columns",
        ),
        (lambda text: HEADER[0] + "\n", [], 1, "has no rows"),
        (lambda text: text.replace("name,age", "age,age"), [], 1, "'age'. Rename one (programs: column_names). ["),
        (lambda text: text + "x,1,Oslo,3,\n", [], 2, "The label 'income' is empty in 1 rows"),
        (lambda text: text, ["--columns", "{tmp}/none.json"], 2, "none.json cannot be read"),
        (lambda text: text, ["--hidden-units", "a"], 2, "--hidden-units should be integers"),
        (lambda text: text, ["--epochs", "0"], 2, "--epochs should be positive"),
        (lambda text: text, ["--patience", "-1"], 2, "--patience should be finite and not negative"),
        (lambda text: text, ["--learning-rate", "0"], 2, "--learning-rate should be positive"),
        (lambda text: text, ["--learning-rate", "inf"], 2, "--learning-rate should be positive and finite"),
        (lambda text: text, ["--weight-decay", "nan"], 2, "--weight-decay should be finite and not negative"),
        (
            lambda text: text.replace("\nn7,", "\nn7,1,Oslo,,low\nn7,"),
            ["--weight-column", "hours"],
            1,
            "line 9: column 'hours': no value. Correct the file, or leave such rows out with --on-error skip",
        ),
        (
            lambda text: text.replace("\nn7,", "\nn7,inf,Oslo,1,low\nn7,"),
            ["--columns", "{tmp}/columns.json"],
            1,
            "Feature 'age' holds inf in {tmp}/people.csv, line 9: it is not finite",
        ),
        (
            lambda text: text,
            ["--weight-column", "hours"],
            1,
            "Weight 'hours' holds -3.0 in {tmp}/people.csv, line 12: it must be at least 0",
        ),
    ],
)
def test_wrong_inputs_are_refused_at_the_start(people, tmp_path, capsys, change, more, code, message):
    lines = change(people.read_text()).splitlines(keepends=True)
    if "--weight-column" in more:
        cells = lines[11].split(",")
        lines[11] = ",".join([*cells[:3], "-3", cells[4]])
    people.write_text("".join(lines))
    (tmp_path / "columns.json").write_text(json.dumps(COLUMNS))
    assert command(people, tmp_path, *(argument.format(tmp=tmp_path) for argument in more)) == code
    assert message.format(tmp=tmp_path) in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_an_empty_model_dir_is_refused(people, tmp_path, capsys, monkeypatch):
    """An empty path would be the current directory."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with pytest.raises(SystemExit) as stop:
        main(["tabular", "train", "--csv", str(people), "--label", "income", "--model-dir="])
    assert stop.value.code == 2
    assert "--model-dir: must not be empty" in capsys.readouterr().err
    assert not list(here.iterdir())


@pytest.mark.slow
def test_a_number_that_is_none(people, tmp_path, capsys):
    assert command(people, tmp_path, "--model", "linear", "--no-export", "--no-plots", "--epochs", "1") == 0
    lines = people.read_text().splitlines()
    lines[3] = "x,forty,Oslo,3,low"
    people.write_text("\n".join(lines) + "\n")
    assert command(people, tmp_path, "--model", "linear") == 1
    assert "people.csv, line 4: column 'age': 'forty' is not of type float32" in capsys.readouterr().err


@pytest.mark.slow
def test_a_class_that_is_none(people, tmp_path, capsys):
    quick = ["--model", "linear", "--no-export", "--no-plots", "--epochs", "1"]
    assert command(people, tmp_path, *quick) == 0
    lines = people.read_text().splitlines()
    lines[8] = "x,40,Oslo,3,hihg"
    people.write_text("\n".join([*lines, "y,40,Oslo,3,"]) + "\n")
    capsys.readouterr()
    assert command(people, tmp_path, *quick) == 1
    message = "people.csv, line 9: column 'income': unknown token 'hihg' (nearest in the vocabulary: 'high'"
    assert message in capsys.readouterr().err
    skipping = ["--model-dir", tmp_path / "other", "--columns", tmp_path / "model" / "columns.json"]
    assert command(people, tmp_path, *skipping, *quick, "--on-error", "skip") == 0
    output = capsys.readouterr().out
    assert "on 240 rows, 30 for validation" in output  # 301 rows, two of them bad
    assert "evaluated on 29 rows" in output


def test_every_tenth_row_is_held_out(people, tmp_path, capsys):
    """The evaluation is the same if these rows are in a separate file."""
    quick = ["--model", "linear", "--no-export", "--no-plots", "--epochs", "2", "--shuffle-rows", "64"]
    quick += ["--patience", "0"]  # the validation rows of a separate file are different
    assert command(people, tmp_path, *quick) == 0
    first = capsys.readouterr().out.splitlines()
    header, *rows = people.read_text().splitlines()
    training, held_out = tmp_path / "training.csv", tmp_path / "held_out.csv"
    training.write_text("\n".join([header, *(row for n, row in enumerate(rows) if n % 10 != 9)]) + "\n")
    held_out.write_text("\n".join([header, *rows[9::10]]) + "\n")
    columns = tmp_path / "model" / "columns.json"
    apart = ["--csv", training, "--eval-csv", held_out, "--columns", columns, "--label", "income"]
    assert main(["tabular", "train", *map(str, [*apart, "--model-dir", tmp_path / "apart"]), *quick]) == 0
    second = capsys.readouterr().out.splitlines()
    places = (next(n for n, line in enumerate(lines) if line.startswith("trained: ")) for lines in (first, second))
    first, second = (lines[place:] for lines, place in zip((first, second), places, strict=True))
    assert first[:-1] == second[:-1]  # rows, steps, loss and metrics
    assert first[0].startswith("trained: 9 steps on 270 rows")


@pytest.mark.slow
def test_what_is_not_a_number_becomes_the_mean(people, tmp_path, capsys):
    """The word nan counts as an empty field."""
    people.write_text(people.read_text() + "".join(f"z{n},nan,Oslo,20,high\n" for n in range(10)))
    assert command(people, tmp_path, "--no-export", "--no-plots", "--no-baselines", "--epochs", "1") == 0
    columns = json.loads((tmp_path / "model" / "columns.json").read_text())["columns"]
    assert columns["age"]["kind"] == "numeric"
    assert 30 < columns["age"]["mean"] < 50
    loss = next(line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("loss ="))
    assert np.isfinite(float(loss.split("=")[1]))


def results(lines):
    """The table at the end of the output: numbers by model."""
    place = next(n for n, line in enumerate(lines) if line.split()[:1] == ["accuracy"] and "=" not in line)
    return {line.split()[0]: float(line.split()[1]) for line in lines[place + 1 :] if not line.startswith("repeat: ")}


@pytest.mark.slow
@pytest.mark.libraries
def test_the_end_of_a_run(people, tmp_path, capsys):
    """A run stops early, is tested on unseen rows, is compared with simpler models, and can be repeated."""
    sizes = ["--hidden-units", "8", "--epochs", "100", "--patience", "1", "--no-export", "--no-plots"]
    sizes += ["--learning-rate", "0.2", "--dropout", "0"]  # so high that the loss soon stops falling
    assert command(people, tmp_path, *sizes) == 0
    lines = capsys.readouterr().out.splitlines()
    (trained,) = [line for line in lines if line.startswith("trained: ")]
    assert "on 240 rows, 30 for validation; early stopping: no lower average_loss" in trained
    assert int(trained.split()[1]) < 100 * 240 // 64
    found = results(lines)
    assert list(found) == ["dnn_linear_combined", "linear", "majority"]
    test = [row.rsplit(",", 1)[1] for row in people.read_text().splitlines()[1:]][9::10]
    others = [row.rsplit(",", 1)[1] for n, row in enumerate(people.read_text().splitlines()[1:]) if n % 10 < 8]
    often = max(set(others), key=others.count)
    assert found["majority"] == pytest.approx(test.count(often) / len(test), rel=1e-3)
    assert found["linear"] > found["majority"]
    assert lines[-1].startswith("repeat: estimator tabular train ")


@pytest.mark.slow
def test_the_last_line_repeats_a_run(people, tmp_path, capsys):
    assert command(people, tmp_path, "--epochs", "20", "--no-export", "--no-plots") == 0
    lines = capsys.readouterr().out.splitlines()
    found = results(lines)
    again = shlex.split(lines[-1].removeprefix("repeat: "))
    assert again[:3] == ["estimator", "tabular", "train"]
    assert main([*again[1:], "--no-export", "--no-plots"]) == 0
    assert results(capsys.readouterr().out.splitlines()) == found


def test_json_says_what_the_lines_say(people, tmp_path, capsys):
    assert command(people, tmp_path, "--model", "baseline", "--epochs", "2", "--no-export", "--no-plots", "--json") == 0
    output, log = capsys.readouterr()
    found = json.loads(output, parse_constant=pytest.fail)
    assert found["rows"] == {"test": 30, "validation": 30, "training": 240}
    assert f"trained: {found['steps']} steps on 240 rows" in log
    assert results(log.splitlines()) == pytest.approx(
        {model: metrics["accuracy"] for model, metrics in found["metrics"].items()}, rel=1e-3
    )
    assert log.splitlines()[-1] == f"repeat: {found['repeat']}"


@pytest.mark.plugins
def test_the_importance_of_each_column(people, tmp_path, capsys):
    quick = ["--model", "linear", "--epochs", "5", "--no-baselines", "--no-export", "--no-plots", "--explain"]
    assert command(people, tmp_path, *quick) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("importance of the columns"))
    assert lines[start + 1].split() == ["feature", "accuracy", "auc", "average_loss"]
    assert {line.split()[0] for line in lines[start + 2 :]} == {"age", "city", "hours"}
    assert lines[-1].split()[0] == "hours"
    found = json.loads((tmp_path / "model" / "explanations.json").read_text())
    assert {one["metric"] for one in found["importances"]} == {"accuracy", "auc", "average_loss"}


def test_an_explanation_needs_its_package(people, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "estimator_explain", None)
    assert command(people, tmp_path, "--explain") == 2
    assert "--explain needs estimator-explain: pip install estimator-explain" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_explanations_of_several_processes_are_refused_before_the_training(people, tmp_path, monkeypatch, capsys):
    told = {"JAX_COORDINATOR_ADDRESS": "localhost:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "0"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert command(people, tmp_path, "--explain") == 2
    assert "--explain computes in one process, but 2 processes train together here" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_an_export_that_cannot_be_made_is_refused_before_the_training(people, tmp_path, capsys):
    assert command(people, tmp_path, "--block-plugin", "estimator-exporters") == 2
    assert "there is no format 'stablehlo'" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_the_test_rows_change_nothing(people, tmp_path):
    """Other test rows do not change the model, even with early stopping."""
    quick = ["--model", "linear", "--epochs", "2", "--no-export", "--no-plots"]
    assert command(people, tmp_path, *quick) == 0
    header, *rows = people.read_text().splitlines()
    changed = [f"other,11,Rome,{n},low" if n % 10 == 9 else row for n, row in enumerate(rows)]
    other = tmp_path / "other.csv"
    other.write_text("\n".join([header, *changed]) + "\n")
    columns = ["--columns", str(tmp_path / "model" / "columns.json"), "--label", "income"]
    assert (
        main(["tabular", "train", "--csv", str(other), "--model-dir", str(tmp_path / "other"), *columns, *quick]) == 0
    )
    first, second = (load_variables(str(tmp_path / name)) for name in ("model", "other"))
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_a_missing_word_is_a_category_where_asked(tmp_path):
    """The rows without a word have their own class."""
    path = tmp_path / "rows.csv"
    words = ["a", "b", ""] * 40
    path.write_text("word,y\n" + "".join(f"{word},{'no' if word else 'yes'}\n" for word in words))
    arguments = ["--csv", path, "--label", "y", "--model-dir", tmp_path / "model", "--model", "dnn"]
    quick = ["--missing-category", "--epochs", "1", "--patience", "0", "--no-baselines", "--no-plots", "--no-export"]
    assert main(["tabular", "train", *map(str, arguments), *quick]) == 0
    columns = json.loads((tmp_path / "model" / "columns.json").read_text())["columns"]
    assert columns["word"]["missing_category"] is True
    kernel = load_variables(str(tmp_path / "model"))["dnn/hiddenlayer_0/kernel"]
    assert kernel.shape[0] == 4  # two words, other words, no word


@pytest.mark.slow
@pytest.mark.parametrize("model", ["dnn", "dcn", "baseline"])
def test_other_models_and_a_number_to_predict(tmp_path, capsys, model):
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    path = tmp_path / "line.csv"
    path.write_text("x,y\n" + "".join(f"{a:.4f},{3 * a + 1:.4f}\n" for a in x))
    more = ["--model", model, "--epochs", "120", "--learning-rate", "0.01", "--hidden-units", "16"]
    arguments = ["--csv", path, "--label", "y", "--model-dir", tmp_path / "model", *more]
    assert main(["tabular", "train", *map(str, arguments), *(["--no-export"] if model == "baseline" else [])]) == 0
    loss = next(line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("average_loss"))
    assert float(loss.split("=")[1]) < (20.0 if model == "baseline" else 0.2)


def train_on_a_line(path, model_dir, unit, *more):
    x = np.random.default_rng(1).normal(size=100)
    path.write_text("x,y\n" + "".join(f"{a:.4f},{(300 * a + 4000) * unit}\n" for a in x))
    quick = ["--model", "linear", "--patience", "0", "--batch-size", "16", "--no-export", "--json"]
    return main(["tabular", "train", "--csv", str(path), "--label", "y", "--model-dir", str(model_dir), *quick, *more])


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_linear_model_learns_labels_of_any_size(tmp_path, capsys, unit):
    assert train_on_a_line(tmp_path / "line.csv", tmp_path / "model", unit) == 0
    models = json.loads(capsys.readouterr().out)["metrics"]
    assert models["linear"]["average_loss"] < models["mean"]["average_loss"] / 100


@pytest.mark.parametrize(("unit", "scale"), [(1e-30, r"2\.\d+e-28"), (1e25, r"2\.\d+e\+27")])
def test_labels_whose_squared_errors_are_no_numbers_are_refused(tmp_path, capsys, unit, scale):
    """The errors of a model of small ones were shown as 0. Large ones ended with a loss that is not finite."""
    assert train_on_a_line(tmp_path / "line.csv", tmp_path / "model", unit) == 2
    assert re.search(
        rf"The label 'y' has the scale {scale}, but it must be from 1e-17 to 1e\+17", capsys.readouterr().err
    )
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_an_edited_scale_of_the_label_that_is_not_positive_is_refused(tmp_path, scale):
    path = tmp_path / "columns.json"
    path.write_text(json.dumps({**asdict(Schema(label="y")), "scale": scale}))
    with pytest.raises(ArgumentError, match=r"columns\.json.*The label 'y' has the scale"):
        Schema.read(path)


def test_columns_of_an_earlier_version_train_on_labels_as_they_are(tmp_path, capsys):
    columns = tmp_path / "columns.json"
    schema = Schema(label="y", columns={"x": ColumnSchema(kind="numeric")})
    columns.write_text(json.dumps({key: one for key, one in asdict(schema).items() if key not in ("mean", "scale")}))
    path, model_dir = tmp_path / "line.csv", tmp_path / "model"
    assert train_on_a_line(path, model_dir, 1e-3, "--columns", str(columns), "--epochs", "1") == 0
    capsys.readouterr()
    assert Schema.read(model_dir / "columns.json") == schema
    assert train_on_a_line(path, model_dir, 1e-3, "--epochs", "2") == 0
    capsys.readouterr()
    Schema(label="y", columns=schema.columns, mean=4.0, scale=0.3).write(columns)
    assert train_on_a_line(path, model_dir, 1e-3, "--columns", str(columns), "--epochs", "2") == 2
    assert "holds a model with other columns: 'y' differs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "numbers", "kind"),
    [
        ("PassengerId", range(1, 101), "skip"),
        ("row", range(100), "skip"),
        ("customer_id", [n * n for n in range(100)], "skip"),
        ("__index_level_0__", [n * n for n in range(100)], "skip"),
        ("Unnamed: 0", [n * n for n in range(100)], "skip"),
        ("area", [n * n for n in range(100)], "numeric"),
        ("paid", [n * n for n in range(100)], "numeric"),
        ("id", [n // 2 for n in range(100)], "numeric"),
        ("id", [n + 0.5 for n in range(100)], "numeric"),
        ("id", range(10), "numeric"),
    ],
)
def test_identifiers_are_no_features(name, numbers, kind):
    profile, label = ColumnProfile(), ColumnProfile()
    profile.add([str(number).encode() for number in numbers])
    label.add([b"ab"[number % 2 :][:1] for number, _ in enumerate(numbers)])
    schema = Schema.inferred({name: profile, "y": label}, "y")
    assert schema.columns[name].kind == kind
    lines = list(described(schema, {name: profile, "y": label}))
    assert (
        lines[0] == f"left out: {name} (identifiers, names, and columns with one value or without repeated values)"
    ) == (kind == "skip")
    assert "classes: a " in lines[-1]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--model", "linear"], "holds a model of --model dnn_linear_combined, not linear"),
        pytest.param(["--hidden-units", "8,8"], "holds a model of --hidden-units 8, not 8,8", marks=pytest.mark.slow),
        (["--columns", "{tmp}/edited.json"], "holds a model with other columns: 'hours' differs"),
    ],
)
def test_a_model_dir_of_another_model_is_refused(people, tmp_path, capsys, more, message):
    """A part of its weights has the same names as in the other model. The weights would be read without training."""
    quick = ["--epochs", "1", "--patience", "0", "--no-export", "--no-plots", "--no-baselines"]
    made = [*quick, "--hidden-units", "8"]
    assert command(people, tmp_path, *made) == 0
    path = tmp_path / "model" / "columns.json"
    before = path.read_text()
    edited = json.loads(before)
    edited["columns"]["hours"] = {"kind": "skip"}
    (tmp_path / "edited.json").write_text(json.dumps(edited))
    assert command(people, tmp_path, *made, *(word.format(tmp=tmp_path) for word in more)) == 2
    assert message in capsys.readouterr().err
    assert path.read_text() == before
    assert command(people, tmp_path, *made) == 0
    told = capsys.readouterr().out
    assert "trained: 5 steps" in told
    assert "other rows" not in told


def test_other_rows_in_a_trained_model_dir_are_told(people, tmp_path, capsys):
    quick = ["--model", "linear", "--epochs", "1", "--patience", "0", "--no-export", "--no-plots"]
    assert command(people, tmp_path, *quick) == 0
    other = tmp_path / "other.csv"
    write(other, 200, 1)
    assert command(other, tmp_path, *quick) == 0
    told = f"other rows: {tmp_path / 'model'} began with 270 training rows of {people}, but {other} has 180."
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_number_beyond_float32_is_refused_by_its_row(people, tmp_path, capsys, suffix):
    lines = people.read_text().splitlines()
    lines[3] = "x,1e300,Oslo,3,low"
    people.write_text("\n".join(lines) + "\n")
    path = tmp_path / f"people.{suffix}"
    if suffix == "parquet":
        pandas = pytest.importorskip("pandas")
        pandas.read_csv(people).to_parquet(path)
    assert command(path, tmp_path, "--model", "linear", "--no-export") == 1
    place = "line 4" if suffix == "csv" else "row 2"
    value = "'1e300'" if suffix == "csv" else "1e+300"
    told = capsys.readouterr().err
    assert f"{path}, {place}: column 'age': {value} is infinite as float32. Correct the file" in told
    assert "--on-error skip" in told
