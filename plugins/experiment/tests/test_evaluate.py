"""Tests of `estimator evaluate`: it evaluates checkpoints of a run, by slice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from estimator_core.cli import main

PROGRAM = """
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec

HPARAMS = ec.HParams(rate=0.3, train_steps=4)


def model_fn(features, labels, mode, params):
    y = features["x"] * ec.get_variable("slope", ()) + ec.get_variable("offset", ())
    error = jnp.abs(y - labels)
    metrics = {"error": ec.metrics.mean(error), "positive": ec.metrics.mean(labels > 0)}
    return ec.EstimatorSpec(mode, loss=jnp.mean(error), train_op=optax.sgd(params.rate), eval_metric_ops=metrics)


def experiment_fn(run_config, hparams):
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    features = {"x": x, "sign": np.where(x < 0, "minus", "plus")}
    inputs = dict(x=features, y=3 * x + hparams.rate, batch_size=8, shuffle=False)
    return ec.Experiment(
        ec.Estimator(model_fn, config=run_config.replace(default_hooks=False), params=hparams),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=None),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=1),
        train_steps=hparams.train_steps,
        eval_steps=None,
    )
"""
SERVED = (
    PROGRAM.replace(
        "    error = ",
        "    if mode == ec.ModeKeys.PREDICT:\n"
        "        return ec.EstimatorSpec(mode, predictions={'y': y})\n    error = ",
    )
    + """

def serving_input_receiver_fn():
    import jax
    return ec.export.build_raw_serving_input_receiver_fn({"x": jax.ShapeDtypeStruct((None,), np.float32)})()
"""
)
RUN = ["run", "line.py", "--hparams", "rate=0.0", "--set", "run_config.save_checkpoints_steps=2", "--predictions", "0"]


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "line.py").write_text(PROGRAM)
    monkeypatch.setattr("sys.argv", ["estimator", *RUN])
    assert main([*RUN, "--model-dir", "here"]) == 0
    return tmp_path / "here"


@pytest.mark.plugins
def test_every_checkpoint_by_slice_as_the_run_record_says(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["evaluate", "--model-dir", "here", "--checkpoint", "all", "--slices", "sign", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [found["global_step"] for found in results] == [0, 2, 4]
    for found in results:
        rows = {json.dumps(row["slice"]): row for row in found["slices"]}
        assert rows['{"sign": "minus"}']["examples"] == 16
        # The rate of the recorded run is 0.0, not the rate in the file, so no label moves.
        assert rows['{"sign": "plus"}']["metrics"]["positive"] == 1.0
        assert rows['{"sign": "minus"}']["metrics"]["positive"] == 0.0
    lines = (trained / "eval_one_pass" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["global_step"] for line in lines] == [0, 2, 4]


@pytest.mark.plugins
def test_the_table_and_the_file_of_the_command_line(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    arguments = ["evaluate", "line.py", "--model-dir", "here", "--hparams", "rate=5.0", "--slices", "sign"]
    assert main([*arguments, "--metrics", "positive", "--name", "other"]) == 0
    output = capsys.readouterr().out
    assert "slice       examples  positive" in output
    assert "sign=minus  16        1 [1, 1]" in output
    assert "eval_other" in output
    assert main([*arguments, "--metrics", "auc"]) == 2
    assert "unknown slice metrics ['auc']" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.plugins
def test_slices_of_1_and_of_its_text_have_two_names(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = PROGRAM.replace(
        '"sign": np.where(x < 0, "minus", "plus")', '"k": np.array([1, "1", "2", "2"] * 8, object)'
    )
    assert '"k"' in program
    Path("mixed.py").write_text(program)
    capsys.readouterr()
    assert main(["evaluate", "mixed.py", "--model-dir", "here", "--slices", "k"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith(("all", "k="))]
    assert names == ["all", "k=1", "k='1'", "k=2"]


def test_without_slices_and_refusals(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["evaluate", "line.py", "--model-dir", "here"]) == 0
    assert "global_step  4" in capsys.readouterr().out
    code: Any
    for arguments, message in [
        (["--model-dir", "here", "--checkpoint", "3"], "Steps: [0, 2, 4]"),
        (["--model-dir", "nowhere", "line.py"], "There is no directory nowhere. Correct the path."),
        (["--model-dir", "nowhere"], "There is no directory nowhere. Correct the path."),
    ]:
        code = main(["evaluate", *arguments])
        assert code == 2
        assert message in capsys.readouterr().err
    assert not Path("nowhere").exists()


@pytest.mark.plugins
def test_the_directory_is_that_of_run_if_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "line.py").write_text(SERVED)
    for command in ("evaluate", "export"):
        assert main([command, "line.py"]) == 2
        assert "There is no directory runs/line. Train with `estimator run`, or name" in capsys.readouterr().err
        assert main([command]) == 2
        assert "Give the file of the program, or the directory of its run as" in capsys.readouterr().err
    assert not Path("runs").exists()
    assert main(RUN) == 0
    assert main([*RUN, "--model-dir", "other", "--set", "run_config.tf_random_seed=7"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "line.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["global_step"] == 4
    assert Path("runs/line/eval_one_pass/metrics.jsonl").exists()
    assert not Path("other/eval_one_pass").exists()
    assert main(["evaluate", "line.py", "--set", "run_config.model_dir=other"]) == 0
    assert Path("other/eval_one_pass/metrics.jsonl").exists()
    assert main(["export", "line.py"]) == 0
    assert len(list(Path("runs/line/export/command").iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "Must specify steps > 0, given: 0."),
        (["--metrics", "nope"], "--metrics: unknown metrics ['nope']. Known metrics: ['error', 'global_step', 'loss',"),
        (["--metrics", "nope", "--json"], "--metrics: unknown metrics ['nope']."),
        (["--model-dir="], "--model-dir: must not be empty"),
        (["--set", "run_config.model_dir=there"], "model_dir is given twice, by --model-dir and by --set."),
    ],
)
def test_words_of_evaluate_that_mean_nothing(
    trained: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code: Any
    try:
        code = main(["evaluate", "line.py", "--model-dir", "here", *arguments])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert message in capsys.readouterr().err


def test_the_metrics_that_are_named(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["evaluate", "--model-dir", "here", "--metrics", "error"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert names[2:-1] == ["error", "global_step"]


@pytest.mark.plugins
def test_an_export_of_the_program_that_the_run_record_names(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "line.py"
    program.write_text(SERVED)
    capsys.readouterr()
    assert main(["export", "--model-dir", "here", "--checkpoint", "2", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert Path(written["path"]).parent == trained / "export" / "command" or written["path"].startswith("here/export")
    assert Path(written["checkpoint"]).name == "2"
    assert main(["exports", written["path"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["global_step"] == 2
    code: Any = main(["export", "--model-dir", "here", "--checkpoint", "3"])
    assert code == 2
    assert "Steps: [0, 2, 4]" in capsys.readouterr().err


@pytest.mark.plugins
def test_the_program_of_a_run_is_that_of_the_directory_in_which_it_was_started(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "9:30" / "other"
    elsewhere.mkdir(parents=True)
    (elsewhere / "line.py").write_text(PROGRAM.replace("y=3 * x", "y=300 * x"))
    monkeypatch.chdir(elsewhere)
    capsys.readouterr()
    assert main(["evaluate", "--model-dir", str(trained), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["loss"] < 3  # 300 * x is far from every learned line
    (tmp_path / "line.py").unlink()
    for command in ("evaluate", "export"):
        code: Any = main([command, "--model-dir", str(trained)])
        assert code == 2
        message = capsys.readouterr().err
        assert f"{trained / 'run.json'} says that 'line.py' was run" in message
        assert f"The run was started in {tmp_path}." in message


@pytest.mark.plugins
def test_a_record_without_a_directory_is_read_where_its_model_dir_is(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((trained / "run.json").read_text())
    del record["directory"]
    (trained / "run.json").write_text(json.dumps(record))
    assert main(["evaluate", "--model-dir", "here"]) == 0
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    (elsewhere / "line.py").write_text(PROGRAM)
    monkeypatch.chdir(elsewhere)
    code: Any = main(["evaluate", "--model-dir", str(trained)])
    assert code == 2
    message = f"{trained / 'run.json'} says that 'line.py' was run, but not in which directory. Give the file before"
    assert message in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.plugins
def test_code_of_a_setting_is_that_of_the_directory_in_which_the_run_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.py").write_text(PROGRAM)
    (tmp_path / "line.toml").write_text('program.file = "line.py"\n')
    words = ["run", "line.toml", "--set", "program.file=other.py", "--set", "hparams.rate=0.0"]
    monkeypatch.setattr("sys.argv", ["estimator", *words])
    assert main([*words, "--model-dir", "here", "--predictions", "0"]) == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.py").write_text(PROGRAM.replace("y=3 * x", "y=300 * x"))
    monkeypatch.chdir(elsewhere)
    capsys.readouterr()
    assert main(["evaluate", "--model-dir", str(tmp_path / "here"), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["loss"] < 3  # 300 * x is far from every learned line


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ('model={function="a/line.py:model_fn"}', 'model={function="/runs/a/line.py:model_fn"}'),
        ("inputs.train.args.path=${here}/rows.csv", "inputs.train.args.path=/runs/rows.csv"),
        ("model.function=/code/line.py:model_fn", "model.function=/code/line.py:model_fn"),
        ("model.function=package.module:model_fn", "model.function=package.module:model_fn"),
        ("program.file='line.py'", "program.file=/runs/line.py"),
        ("model.function=/my code/line.py:model_fn", "model.function=/my code/line.py:model_fn"),
        ("model.function=my code/line.py:model_fn", "model.function=/runs/my code/line.py:model_fn"),
        ('a=["my code/b.py:f", "c.py:g"]', 'a=["/runs/my code/b.py:f", "/runs/c.py:g"]'),
        ("hparams.note=see line.py:model_fn", "hparams.note=see line.py:model_fn"),
        ("hparams.note=${here}", "hparams.note=${here}"),
    ],
)
def test_settings_of_a_record_name_files_from_there(given: str, taken: str) -> None:
    from estimator_experiment.opening import _from_there

    assert _from_there(given, Path("/runs")) == taken


def test_hyperparameters_other_than_those_of_the_training_are_told(
    trained: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """This happens if the file of a sweep is passed for one of its trials. The metrics are those of another model."""
    told = "here was trained with rate=0.0, not 0.3. To use the values of the training, pass them with --hparams."
    for words, warned in ((["line.py"], True), (["line.py", "--hparams", "rate=0.0"], False), ([], False)):
        caplog.clear()
        assert main(["evaluate", *words, "--model-dir", "here"]) == 0
        assert (told in caplog.text) == warned


def test_hyperparameters_that_json_does_not_hold_are_not_told_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The record names a function by its memory address, and NaN is unequal to every value."""
    monkeypatch.chdir(tmp_path)
    more = "dict(hparams.values(), layer=lambda x: x, limit=float('nan'), names={'a', 'b'})"
    text = PROGRAM.replace("params=hparams)", f"params={more})").replace("(params.rate", '(params["rate"]')
    (tmp_path / "line.py").write_text(text)
    assert main([*RUN, "--model-dir", "here"]) == 0
    caplog.clear()
    assert main(["evaluate", "line.py", "--model-dir", "here"]) == 0
    (told,) = [record.message for record in caplog.records if "was trained with" in record.message]
    assert told.startswith("here was trained with rate=0.0, not 0.3. To use")


@pytest.mark.plugins
def test_an_export_of_a_configuration_file_is_told_what_it_lacks(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("line.toml").write_text('program.file = "line.py"\n')
    for words in (["export", "line.toml"], ["run", "line.toml", "--exporter", "final"]):
        code: Any = main([*words, "--model-dir", "here"])
        assert code == 2
        message = capsys.readouterr().err
        assert "[serving]" in message
        assert "build_raw_serving_input_receiver_fn" not in message


def test_results_that_cannot_be_written_are_not_computed(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files belong to another user, for example."""
    import os

    from estimator_core import Estimator

    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "here" and access(path, mode))
    monkeypatch.setattr(Estimator, "evaluate", None)
    code: Any = main(["evaluate", "--model-dir", "here"])
    assert code == 2
    message = "Results go to here/eval_one_pass, but here cannot be written. Copy the run, and pass the copy as"
    assert message in capsys.readouterr().err


@pytest.mark.plugins
def test_an_export_that_cannot_be_written_is_refused_before_it_is_made(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import os

    Path("line.py").write_text(SERVED)
    Path("file").write_text("")
    code: Any = main(["export", "--model-dir", "here", "--output", "file/exports"])
    assert code == 2
    message = "The export goes to file/exports, but file is a file. Give another directory: --output DIR."
    assert message in capsys.readouterr().err

    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "here" and access(path, mode))
    code = main(["export", "--model-dir", "here"])
    assert code == 2
    message = (
        "The export goes to here/export/command, but here cannot be written. Give another directory: --output DIR."
    )
    assert message in capsys.readouterr().err
