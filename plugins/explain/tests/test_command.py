"""Tests of `estimator explain` on the run of a file."""

import json
from pathlib import Path

import pytest

from estimator_core.cli import main
from estimator_explain import Explanations, Importance, read_explanations
from estimator_explain.table import table_of

pytest.importorskip("estimator_experiment")

PROGRAM = Path(__file__).with_name("explained_program.py")


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command")
    assert main(["run", str(PROGRAM), "--model-dir", str(folder)]) == 0
    return PROGRAM, folder


def test_the_table_is_printed_and_the_file_is_written(run_dir, capsys):
    file, model_dir = run_dir
    capsys.readouterr()
    arguments = ["explain", str(file), "--model-dir", str(model_dir), "--repeats", "2", "--attributions"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["feature", "loss", "attribution"]
    assert {line.split()[0] for line in lines[1:4]} == {"x", "word", "useless"}
    assert lines[4] == f"written to {model_dir / 'explanations.json'}"
    assert json.loads((model_dir / "explanations.json").read_text())["step"] == 3


def test_the_log_names_the_features_and_not_each_evaluation(run_dir, caplog):
    file, model_dir = run_dir
    arguments = ["explain", str(file), "--model-dir", str(model_dir), "--repeats", "2"]
    caplog.clear()
    assert main(arguments) == 0
    quiet = caplog.messages.copy()
    caplog.clear()
    assert main([*arguments, "--verbose"]) == 0
    assert [line for line in quiet if line.startswith("Shuffling")] == [
        f"Shuffling {name} ({number} of 3)" for number, name in enumerate(("x", "useless", "word"), 1)
    ]
    assert not any("Saving dict" in line for line in quiet)
    assert sum("Saving dict" in line for line in caplog.messages) == 7


def test_what_was_computed_is_told_where_it_cannot_be_written(run_dir, capsys, monkeypatch):
    """The run belongs to another user, for example."""

    def forbidden(model_dir, found):
        raise PermissionError(13, "Permission denied", "theirs")

    monkeypatch.setattr("estimator_explain.write_explanations", forbidden)
    capsys.readouterr()
    file, model_dir = run_dir
    assert main(["explain", str(file), "--model-dir", str(model_dir), "--repeats", "1"]) == 2
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["feature", "loss"]
    assert "error: theirs cannot be written: Permission denied." in err


@pytest.mark.plugins
def test_the_file_is_written_at_a_url_and_nowhere_without_a_name(run_dir, tmp_path, monkeypatch, capsys):
    file, _ = run_dir
    monkeypatch.chdir(tmp_path)
    url = f"file://{tmp_path}/run"
    assert main(["run", str(file), "--model-dir", url]) == 0
    capsys.readouterr()
    arguments = ["explain", str(file), "--repeats", "1", "--model-dir"]
    assert main([*arguments, url]) == 0
    assert f"written to {url}/explanations.json" in capsys.readouterr().out
    found = read_explanations(tmp_path / "run")
    assert found is not None
    assert found.step == 3
    assert main([*arguments, ""]) == 2
    assert "--model-dir must not be empty." in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


def test_json_is_what_the_file_holds(run_dir, capsys):
    file, model_dir = run_dir
    capsys.readouterr()
    groups = ["--features", "x,word", "--metrics", "loss", "--json"]
    assert main(["explain", str(file), "--model-dir", str(model_dir), *groups]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((model_dir / "explanations.json").read_text())
    assert [one["features"] for one in printed["importances"]] == [["x", "word"]]


def test_json_of_a_number_that_is_not_finite_is_strict(run_dir, capsys, monkeypatch):
    def found(*args, **kwargs):
        return [Importance(features=("x",), metric="loss", baseline=float("nan"), losses=(float("inf"),))]

    monkeypatch.setattr("estimator_explain.permutation_importance", found)
    capsys.readouterr()
    file, model_dir = run_dir
    assert main(["explain", str(file), "--model-dir", str(model_dir), "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["importances"]
    assert (one["baseline"], one["losses"]) == ("NaN", ["Infinity"])
    assert read_explanations(model_dir).importances[0].losses == (float("inf"),)


def test_attributions_of_other_names_than_those_of_the_input_are_in_the_table():
    """The numbers of a sequence `q` reach model_fn as `q.numbers`, and x is shuffled together with a word."""
    one = Importance(features=("x", "word"), metric="loss", baseline=0.9, losses=(0.2,))
    two = Importance(features=("q",), metric="loss", baseline=0.9, losses=(0.1,))
    table = table_of(Explanations(step=1, importances=[one, two], strengths={"q.numbers": 0.5, "x": 0.25}))
    assert [line.split() for line in table.splitlines()] == [
        ["feature", "loss", "attribution"],
        ["x,word", "0.2"],
        ["q", "0.1"],
        ["q.numbers", "0.5"],
        ["x", "0.25"],
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--metrics", "auc"], "There are no metrics ['auc']"),
        (["--features", "age"], "There are no features ['age']"),
        (["--attributions", "--output", "odds", "--repeats", "1"], "There is no prediction 'odds'"),
        (["--repeats", "0"], "repeats must be at least 1"),
        (["--seed", "-1"], "seed must be at least 0"),
    ],
)
def test_bad_usage_is_one_line(run_dir, capsys, words, said):
    file, model_dir = run_dir
    assert main(["explain", str(file), "--model-dir", str(model_dir), *words]) == 2
    assert said in capsys.readouterr().err


def test_an_untrained_directory_is_refused(run_dir, tmp_path, capsys):
    assert main(["explain", str(run_dir[0]), "--model-dir", str(tmp_path)]) == 2
    assert f"There is no checkpoint in {tmp_path}. Train first" in capsys.readouterr().err
    assert main(["explain", str(run_dir[0]), "--model-dir", f"{tmp_path}/absent"]) == 2
    assert f"There is no directory {tmp_path}/absent. Correct the path." in capsys.readouterr().err
