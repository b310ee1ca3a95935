"""Tests of `estimator run --dry-run` for a program that has no experiment_fn."""

from pathlib import Path

import pytest

from estimator_core.cli import main

PROGRAM = """
import queue, sys
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec
from estimator_core.testing import array_format

LATE = queue.Queue()


def model_fn(features, labels, mode):
    y = features["x"] @ ec.get_variable("w", (3,))
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y + features.get("shift", 0)})
    metrics = {"weighted": ec.metrics.mean(y, features["weight"])} if mode == ec.ModeKeys.EVAL else None
    return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.1), eval_metric_ops=metrics)


def rows(weight=True):
    features = {"x": np.ones((4, 3), np.float32), **({"weight": np.ones(4, np.float32)} if weight else {})}
    return lambda: (each for each in [(features, np.ones(4, np.float32))])


def late():
    yield LATE.get()


def main():
    estimator = ec.Estimator(model_fn, sys.argv[1], plugins=ec.Plugins(extra=[array_format]))
    receiver = ec.export.build_raw_serving_input_receiver_fn({"x": np.ones((1, WIDTH), np.float32)})
    estimator.train(rows(), steps=5)
    print("accuracy", estimator.evaluate(rows(WEIGHED))["accuracy"], estimator.get_variable_value("w").shape)
    estimator.evaluate(late)
    ec.train_and_evaluate(estimator, ec.TrainSpec(rows(), max_steps=9), ec.EvalSpec(rows(WEIGHED), name="held_out"))
    print("predictions", len(list(estimator.predict(rows(), predict_keys=["y"]))))
    print("export", bool(estimator.export_saved_model("exports", receiver, format="arrays")))
    LAST


if __name__ == "__main__":
    main()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**changes: str) -> None:
    source = PROGRAM
    for name, value in {"WIDTH": "3", "WEIGHED": "True", "LAST": "", **changes}.items():
        source = source.replace(name, value)
    Path("program.py").write_text(source)


def test_all_calls_of_a_program_are_tried_and_none_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    assert main(["run", "program.py", "--dry-run", "--arguments=runs/one"]) == 0
    output = capsys.readouterr().out
    assert "accuracy nan (3,)" in output
    assert "predictions 4" in output
    calls = [line.split()[1] for line in output.splitlines() if line.startswith("tried ")]
    assert calls == ["train", "evaluate", "evaluate", "train_and_evaluate", "predict", "export_saved_model"]
    assert "The input of evaluate in line 32 is not tried: that would use up a Queue in 'LATE'" in output
    assert output.endswith("Inputs, modes and exports fit together.\n")
    assert [path.name for path in Path().iterdir()] == ["program.py"]


def test_all_faults_of_a_program_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    write(WIDTH="4", WEIGHED="False", LAST="no_such_name")
    assert main(["run", "program.py", "--dry-run", "--arguments=runs/one"]) == 1
    output = capsys.readouterr().out
    assert "1. model_fn in mode 'eval', with the input of evaluate in line 31: KeyError: 'weight'" in output
    assert "2. model_fn in mode 'eval', with the input of the EvalSpec 'held_out' of train_and_evaluate in" in output
    assert "3. export_saved_model in line 35: TypeError: " in output
    assert "4. The program, in line 36: NameError: name 'no_such_name' is not defined" in output
    assert output.endswith("4 faults; nothing was trained.\n")


def test_what_needs_results_ends_the_trial_and_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    write(LAST="estimator.predictor()({'x': np.ones((1, 3))})")
    assert main(["run", "program.py", "--dry-run", "--arguments=runs/one"]) == 0
    assert (
        "The program after line 36 is not tried, because it needs results: CheckpointNotFound"
        in capsys.readouterr().out
    )


def test_a_program_that_asks_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("program.py").write_text("import estimator_core\n")
    assert main(["run", "program.py", "--dry-run"]) == 2
    assert "as a program it called no method of an Estimator" in capsys.readouterr().err
    assert main(["run", "program.py", "--arguments=x"]) == 2
    assert "--arguments needs --dry-run" in capsys.readouterr().err


def test_specs_that_train_and_evaluate_refuses_are_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    shared = """from estimator_core.builtin_hooks import SummarySaverHook
    hooks = [SummarySaverHook(save_steps=1)]
    train_spec = ec.TrainSpec(rows(), max_steps=9, hooks=hooks)
    ec.train_and_evaluate(estimator, train_spec, ec.EvalSpec(rows(), hooks=hooks))"""
    write(LAST=shared)
    assert main(["run", "program.py", "--dry-run", "--arguments=runs/one"]) == 1
    output = capsys.readouterr().out
    assert "A SummarySaverHook is in the hooks of both TrainSpec and EvalSpec" in output
    assert "1 fault; nothing was trained." in output
