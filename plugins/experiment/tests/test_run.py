"""Tests of `estimator run`: a file, its hyperparameters and settings, the report, and the dry run."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec
from estimator_core.cli import main
from estimator_experiment.program import load_module
from estimator_experiment.schedules import SCHEDULES

PROGRAM = """
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec

HPARAMS = ec.HParams(rate=0.3, train_steps=20)


def model_fn(features, labels, mode, params):
    y = features["x"] * ec.get_variable("slope", ()) + ec.get_variable("offset", ())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    loss = jnp.mean((y - labels) ** 2) * SCALE
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(params.rate))


def experiment_fn(run_config, hparams):
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    inputs = dict(x={"x": x}, y=3 * x + 1, batch_size=8, shuffle=False)
    return ec.Experiment(
        ec.Estimator(model_fn, config=run_config.replace(default_hooks=False), params=hparams),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=None),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=1),
        train_steps=hparams.train_steps,
    )


def other(run_config, hparams):
    return experiment_fn(run_config, ec.HParams(rate=0.1, train_steps=3))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "line.py"
    path.write_text(PROGRAM.replace("SCALE", "1.0"))
    return path


def test_trains_evaluates_predicts_and_says_where_things_lie(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["run", str(program), "--hparams", "train_steps=12", "--set", "run_config.save_checkpoints_steps=6"]) == 0
    )
    output = capsys.readouterr().out
    assert "global_step  12" in output
    assert "Training ended: reached step 12." in output
    assert "Predictions of the first evaluation examples" in output
    assert "tensorboard --logdir runs/line" in output
    assert sorted(path.name for path in Path("runs/line/checkpoints").iterdir()) == ["0", "12", "6"]
    record = json.loads(Path("runs/line/run.json").read_text())
    assert record["hparams"] == {"rate": 0.3, "train_steps": 12}


def test_what_to_look_at_can_be_pasted_into_a_shell(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(program), "--hparams", "train_steps=2", "--model-dir", "my runs/line"]) == 0
    looks = [line.partition("view: ")[2] for line in capsys.readouterr().out.splitlines() if "view: " in line]
    assert [shlex.split(look)[-1] for look in looks] == ["my runs/line"] * len(looks)
    assert len(looks) >= 2


def test_the_evaluations_of_an_experiment_that_makes_several(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = """

class Two(ec.Experiment):
    def train_and_evaluate(self):
        train_spec, spec = self.specs()
        other = ec.EvalSpec(self.eval_input_fn, steps=1, name="test")
        return ec.train_and_evaluate(self.estimator, train_spec, [spec, other])


def experiment_fn("""
    text = PROGRAM.replace("SCALE", "1.0").replace("return ec.Experiment(", "return Two(")
    program.write_text(text.replace("\n\n\ndef experiment_fn(", two, 1))
    words = ["run", str(program), "--hparams", "train_steps=4", "--predictions", "0"]
    assert main([*words, "--model-dir", "first"]) == 0
    told = capsys.readouterr().out
    assert told.index("evaluation without a name\n") < told.index("evaluation test\n") < told.index("Training ended")
    assert main([*words, "--model-dir", "second", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert {name: found["global_step"] for name, found in metrics.items()} == {"": 4, "test": 4}


def test_the_result_as_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "run", str(program), "--hparams", "train_steps=4"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["model_dir"], told["stop_reason"], told["exports"]) == ("runs/line", "reached step 4", [])
    assert told["metrics"]["global_step"] == 4
    assert Path(told["checkpoint"]).name == "4"


@pytest.mark.plugins  # estimator-storage provides the storage
def test_a_run_at_a_url_continues_and_tells_the_url(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"file://{program.parent}/store/line"
    words = [str(program), "--model-dir", f"{url}/"]
    assert main(["run", *words, "--hparams", "train_steps=4"]) == 0
    output = capsys.readouterr().out
    assert f"checkpoints  {url}/checkpoints/4        view: estimator checkpoints {url}" in output
    assert f"run record   {url}/run.json" in output
    assert "estimator-run-" not in output
    assert main(["--json", "run", *words, "--hparams", "train_steps=6"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["model_dir"], told["checkpoint"]) == (url, f"{url}/checkpoints/6")
    assert main(["checkpoints", url, "--json"]) == 0
    assert [one["step"] for one in json.loads(capsys.readouterr().out)] == [0, 4, 6]


def test_another_model_dir_than_that_of_the_command_is_refused(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text(program.read_text().replace("default_hooks=False", "model_dir='elsewhere'"))
    assert main(["run", str(program)]) == 2
    assert "of the experiment writes to 'elsewhere', but run_config says 'runs/line'" in capsys.readouterr().err


def test_the_help_lists_every_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert f"the method of Experiment to run: {', '.join(SCHEDULES)} (default:" in text
    assert all(callable(getattr(ec.Experiment, name)) for name in SCHEDULES)


def test_another_function_schedule_and_directory(program: Path) -> None:
    assert main(["run", f"{program}:other", "--schedule", "train", "--model-dir", "here"]) == 0
    assert sorted(path.name for path in Path("here/checkpoints").iterdir()) == ["0", "3"]


def test_running_again_goes_on(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for steps in (4, 4, 8):
        assert main(["run", str(program), "--hparams", f"train_steps={steps}"]) == 0
        assert f"global_step  {steps}" in capsys.readouterr().out


@pytest.mark.parametrize(("scale", "code", "verdict"), [("1.0", 0, "overfits it"), ("0.0", 1, "does NOT overfit")])
def test_dry_run_tells_whether_one_batch_can_be_learnt(
    program: Path, capsys: pytest.CaptureFixture[str], scale: str, code: int, verdict: str
) -> None:
    program.write_text(PROGRAM.replace("* SCALE", "" if code == 0 else "* 0.0 + 1.0"))
    assert main(["run", str(program), "--dry-run"]) == code
    output = capsys.readouterr().out
    assert "slope" in output
    assert "float32" in output
    assert "loss (scalar)" in output
    assert verdict in output
    assert not Path("runs").exists()
    (steps,) = re.findall(r"One batch of 8, (\d+) steps", output)
    assert int(steps) < 300 if code == 0 else int(steps) == 300


def test_a_dry_run_whose_loss_is_not_finite_names_no_checkpoint(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text(PROGRAM.replace("* SCALE", "* float('nan')"))
    assert main(["run", str(program), "--dry-run"]) == 1
    told = capsys.readouterr().err
    assert "loss is not finite at step 1. No checkpoint contains this state." in told
    assert "newest checkpoint" not in told


def test_an_interrupted_dry_run_promises_no_continuation(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopping = "    def begin(self, run):\n        import os, signal\n        os.kill(os.getpid(), signal.SIGTERM)\n"
    hooks = f"class Stopping(ec.Hook):\n{stopping}\n\ndef model_fn("
    text = PROGRAM.replace("def model_fn(", hooks, 1).replace(
        "train_steps=hparams", "train_monitors=[Stopping()], train_steps=hparams"
    )
    program.write_text(text.replace("* SCALE", "* 0.0 + 1.0"))
    assert main(["run", str(program), "--dry-run"]) == 75
    assert capsys.readouterr().err.endswith("estimator run: The dry run was interrupted at step 0. It wrote nothing.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nofile.py"], "There is no file"),
        (["line.py:nothing"], "defines no function 'nothing'"),
        (["line.py", "--hparams", "speed=1"], "Unknown hyperparameter"),
        (["line.py", "--set", "save=1"], "run_config.FIELD=VALUE"),
        (["line.py", "--set", "run_config.save_steps=1"], "no argument 'save_steps'"),
        (["line.py", "--schedule", "fly"], "non-existent task 'fly'"),
        (["line.py", "--hook", "no_such_hook"], "no_such_hook"),
        (["line.py", "--exporter", "final"], "define serving_input_receiver_fn"),
    ],
)
def test_refusals(program: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code: Any = main(["run", *arguments])
    assert code == 2
    assert message in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_negative_count_of_predictions_is_refused_before_anything_is_trained(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code: Any = main(["run", str(program), "--predictions", "-1"])
    assert code == 2
    assert "--predictions must be at least 0, given: -1." in capsys.readouterr().err
    assert not Path("runs").exists()


def test_an_empty_model_dir_is_refused(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(program), "--model-dir="])
    assert stop.value.code == 2
    assert "--model-dir: must not be empty" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["{[]: 1}", "-" * 100_000 + "1"], ids=["no key", "deep"])
def test_a_setting_that_python_cannot_read_is_a_text(
    program: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    code: Any = main(["run", str(program), "--set", f"run_config.backend={value}"])
    assert code == 2
    assert "there is no backend" in capsys.readouterr().err


def test_roles_are_set_from_the_shell(tmp_path, capsys):
    program = tmp_path / "program.py"
    program.write_text(
        "def experiment_fn(run_config, hparams):\n    raise SystemExit(f'roles: {dict(run_config.components)}')\n"
    )
    with pytest.raises(SystemExit, match=r"roles: \{'log': None, 'export_check': 'acme_loose'\}"):
        main(["run", str(program), "--set", "run_config.components={'log': None, 'export_check': 'acme_loose'}"])
    assert main(["run", str(program), "--set", "run_config.components={'lgo': None}"]) != 0
    assert "no role 'lgo'. Did you mean 'log'?" in capsys.readouterr().err


def test_a_program_that_is_loaded_again_adds_nothing_to_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials of a sweep load their program repeatedly, and each new path is searched for plugins."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "again_code.py").write_text("import again_beside\n")
    (tmp_path / "again_beside.py").write_text("")
    before = len(sys.path)
    for _ in range(3):
        load_module(tmp_path / "again_code.py")
    assert sys.path[0] == str(tmp_path.resolve())
    assert len(sys.path) == before + 1


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_predicts_nothing_ends_well(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Training and evaluation are complete, and the program does not request predictions."""
    branch = '    if mode == ec.ModeKeys.PREDICT:\n        return ec.EstimatorSpec(mode, predictions={"y": y})\n'
    assert branch in program.read_text()
    program.write_text(program.read_text().replace(branch, ""))
    assert main(["run", str(program)]) == 0
    output = capsys.readouterr().out
    assert "No predictions are shown, because predict fails: TypeError: " in output
    assert "line.py:10: loss = jnp.mean((y - labels) ** 2)" in output
    assert "Add --predictions 0 to skip them." in output
    assert "run record" in output


@pytest.mark.parametrize("kind", ["PluginError", "CheckpointCorruptError", "PreemptedError"])
def test_a_fault_that_is_not_of_the_model_stays_an_error_of_predict(
    program: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """A strict plugin that failed in predict, or a damaged checkpoint, once ended with exit code 0."""
    branch = "    if mode == ec.ModeKeys.PREDICT:\n"
    program.write_text(program.read_text().replace(branch, f"{branch}        raise ec.errors.{kind}('it is down')\n"))
    assert main(["run", str(program)]) == (75 if kind == "PreemptedError" else 1)
    told = capsys.readouterr()
    assert "it is down" in told.err
    assert "No predictions are shown" not in told.out


def test_an_evaluation_input_that_is_used_up_shows_no_predictions(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Training and evaluation are complete, so the report does not fail."""
    once = "_rows = iter(list(ec.inputs.numpy_input_fn(**inputs, num_epochs=1)()))\n    return ec.Experiment("
    text = program.read_text().replace("return ec.Experiment(", once)
    program.write_text(text.replace("ec.inputs.numpy_input_fn(**inputs, num_epochs=1),\n", "lambda: _rows,\n"))
    assert main(["run", str(program)]) == 0
    output = capsys.readouterr().out
    assert "No predictions are shown: the evaluation input yields no more examples." in output
    assert "run record" in output


def test_a_run_whose_output_is_closed_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has no standard output in `estimator run line.py >&-`, for example."""
    monkeypatch.chdir(tmp_path)
    Path("line.py").write_text(PROGRAM.replace("SCALE", "1.0"))
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        code = main(["run", "line.py", "--hparams", "train_steps=2"])
    assert code == 0
    assert Path("runs/line/run.json").exists()


def test_an_edit_of_the_same_second_and_size_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "edited_code.py"
    seen: list[int] = []
    for number in (1, 2):
        file.write_text(f"NUMBER = {number}\n")
        os.utime(file, (1e9, 1e9))
        seen.append(load_module(file).NUMBER)
    assert seen == [1, 2]


def test_functions_of_a_program_know_their_file_also_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "placed_code.py").write_text("def place():\n    return 1\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    module = load_module(Path("placed_code.py"))
    monkeypatch.chdir("/")
    assert module.place.__code__.co_filename == module.__file__ == str(tmp_path / "placed_code.py")
    assert inspect.getsource(module.place) == "def place():\n    return 1\n"
