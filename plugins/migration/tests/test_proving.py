"""Tests of `estimator migrate prove` against a recording that numpy wrote: equal values, and every difference."""

import json
import sys
from pathlib import Path

import pytest

from estimator_core.cli import main
from plugins.migration.tests.written_recording import write_recording, write_table_recording

PROGRAM = """
import jax, jax.numpy as jnp, optax
import estimator_core as ec

def model_fn(features, labels, mode):
    w, b = ec.get_variable("{w}", (2,)), ec.get_variable("b", ())
    y = features["x"] @ w + {b}
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={{"y": y}})
    loss = jnp.mean((y - labels) ** 2) + {noise}
    metrics = {{"{metric}": ec.metrics.mean(y - labels)}}
    return ec.EstimatorSpec(mode, loss=loss, train_op={optimizer}({rate}), eval_metric_ops=metrics)

def proof(model_dir):
    return {{"estimator": ec.Estimator(model_fn, model_dir=model_dir, config=ec.RunConfig(tf_random_seed=1))}}
"""
CASES: dict[str, dict[str, str]] = {
    "the same": {},
    "another rate": {"rate": "0.2"},
    "no such metric": {"metric": "offset"},
    "noise": {"noise": "jax.random.normal(ec.next_rng_key()) * (mode == ec.ModeKeys.TRAIN)"},
    "another name": {"w": "weights"},
    "frozen": {"b": "jax.lax.stop_gradient(b)"},
    "adam": {"optimizer": "optax.adam"},
    "adam, another rate": {"optimizer": "optax.adam", "rate": "0.1002"},
    "adam, bias of half the slope": {"optimizer": "optax.adam", "b": "(b / 2 + jax.lax.stop_gradient(b) / 2)"},
    "adam of one, the other at rest": {"optimizer": "(lambda rate: ec.minimize(0.0, optax.adam(rate), 'w'))"},
    "adam in two": {
        "optimizer": "(lambda rate: ec.group(*(ec.minimize(loss, optax.adam(rate), name) for name in 'wb')))"
    },
}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recording(tmp_path_factory.mktemp("prove") / "recording")


def prove(case: str, recording: Path, folder: Path, *more: str) -> int:
    given = {
        "w": "w",
        "b": "b",
        "metric": "bias",
        "noise": "0.0",
        "rate": "0.1",
        "optimizer": "optax.sgd",
        **CASES[case],
    }
    program = folder / "new.py"
    program.write_text(PROGRAM.format(**{**given, **CASES[case]}))
    return main(["migrate", "prove", "old.py", str(program), "--recorded", str(recording), *more])


def test_programs_that_agree(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove("the same", recording, tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:6]] == [
        "predictions at the start",
        "metrics at the start",
        "loss of step 1",
        "gradients of step 1",
        "weights after step 1",
    ]
    assert lines[-1] == "The programs agree over 3 steps within 1e-05 (TensorFlow 0.0, Python 3.0)."


def test_sparse_features_are_as_wide_as_each_batch_needs(tmp_path: Path) -> None:
    assert prove("the same", write_recording(tmp_path / "recording", sparse=True), tmp_path) == 0


def test_the_first_to_diverge_is_named(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert prove("another rate", recording, tmp_path, "--html", str(page)) == 3
    assert "The first to diverge is weights after step 1: b, by " in capsys.readouterr().out
    assert '<tr class="apart"><td>weights after step 1</td><td>b</td>' in page.read_text()
    assert '<tr class="same"><td>gradients of step 1</td><td>b</td>' in page.read_text()


@pytest.mark.parametrize("case", ["adam", "adam in two"])
def test_grown_rounding_is_told_from_another_program(case: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """In a free run, Adam makes full steps of rounding errors.

    If each step starts from the old weights, all values agree.
    """
    recording = write_recording(tmp_path / "recording", adam=True)
    assert prove(case, recording, tmp_path) == 0
    verdict = capsys.readouterr().out.splitlines()[-1]
    assert verdict.startswith(
        "The programs agree over 3 steps within 1e-05 (TensorFlow 0.0, Python 3.0): each step from"
    )
    assert "In a free run rounding grows to " in verdict
    assert prove(case, recording, tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agree"]
    assert found["drift"]["stage"].startswith("weights after step")
    assert found["drift"]["difference"] > 1e-3
    assert max(each["difference"] for each in found["led"]) < 1e-6


TABLE = """
import jax.numpy as jnp
import estimator_core as ec
import optax

def model_fn(features, labels, mode):
    rows = ec.sparse_lookup("w", features["id"], (6, 1))
    y = rows[:, 0] + ec.get_variable("b", ())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    optimizer = optax.chain(optax.scale_by_rms(0.9, 1e-12), optax.add_decayed_weights(0.1), optax.scale(-0.1))
    loss = jnp.mean((y - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optimizer)

def proof(model_dir):
    return {"estimator": ec.Estimator(model_fn, model_dir=model_dir, config=ec.RunConfig(tf_random_seed=1))}
"""


def test_each_step_moves_only_the_rows_of_its_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that no batch touches again had its earlier gradient at every later step, and moved by its decay."""
    recording = write_table_recording(tmp_path / "recording")
    (tmp_path / "new.py").write_text(TABLE)
    code = main(["migrate", "prove", "old.py", str(tmp_path / "new.py"), "--recorded", str(recording), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [each for each in found["led"] if not each["difference"] < 1e-6] == []
    assert code == 0


@pytest.mark.parametrize("case", [name for name in CASES if name.startswith("adam, ") or name.startswith("adam of")])
def test_another_program_is_no_rounding(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove(case, write_recording(tmp_path / "recording", adam=True), tmp_path, "--json") == 3
    found = json.loads(capsys.readouterr().out)
    assert not found["agree"]
    assert found["drift"] is None


def test_the_first_to_diverge_in_single_steps_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the JSON named it. The first difference of a free run may be grown rounding."""
    recording, page = write_recording(tmp_path / "recording", adam=True), tmp_path / "page.html"
    case = next(name for name in CASES if name.startswith("adam, "))
    assert prove(case, recording, tmp_path, "--json") == 3
    led = json.loads(capsys.readouterr().out)["led"]
    first = next(each for each in led if not each["difference"] <= 1e-5)
    assert prove(case, recording, tmp_path, "--html", str(page)) == 3
    said = f"In steps that each begin with the old weights, it is {first['stage']}: {first['name']}, by "
    assert said in capsys.readouterr().out.splitlines()[-1]
    alone = page.read_text().partition("<h2>Steps that each begin with the old weights</h2>")[2]
    assert f'<tr class="apart"><td>{first["stage"]}</td><td>{first["name"]}</td>' in alone
    assert alone.count("<tr class=") == len(led)


def test_what_is_not_here_differs(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove("no such metric", recording, tmp_path, "--json") == 3
    found = json.loads(capsys.readouterr().out)
    assert found["first_diverging"] == {"stage": "metrics at the start", "name": "bias"}
    (row,) = (each for each in found["quantities"] if each["difference"] is None and "start" in each["stage"])
    assert row["note"] == "not here; the names here are: global_step, loss, offset"


def test_random_losses_are_refused(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove("noise", recording, tmp_path) == 2
    assert "The training loss of the new program differs between two computations" in capsys.readouterr().err
    there = write_recording(tmp_path / "random", random=True)
    assert prove("the same", there, tmp_path) == 2
    assert "The training loss of the old program differs between two computations" in capsys.readouterr().err


def test_names_that_differ(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove("another name", recording, tmp_path) == 1
    assert "weights: not there as weights" in capsys.readouterr().err
    names = tmp_path / "names.json"
    names.write_text('{"weights": "w"}')
    assert prove("another name", recording, tmp_path, "--names", str(names)) == 0
    capsys.readouterr()
    names.write_text('{"weights": "w", "weights/b": "w"}')
    assert prove("another name", recording, tmp_path, "--names", str(names)) == 2
    assert (
        "Names are given for variables, metrics or predictions that the new program does not have: ['weights/b']"
        in capsys.readouterr().err
    )


def test_what_is_frozen_here_has_no_gradient(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prove("frozen", recording, tmp_path) == 3
    assert "The first to diverge is gradients of step 1: b, by " in capsys.readouterr().out


def test_an_interpreter_without_tensorflow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("")
    command = ["migrate", "prove", str(program), str(program)]
    assert main([*command, "--tf-python", sys.executable]) == 2
    assert "No module named 'tensorflow'" in capsys.readouterr().err
    assert main([*command, "--tf-python", str(tmp_path / "no")]) == 2
    assert f"--tf-python {tmp_path / 'no'} cannot be started: No such file or directory." in capsys.readouterr().err
    assert main([*command, "--recorded", str(tmp_path)]) == 2
    assert f"{tmp_path} holds no recording" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "named"), [("keras", True), ("theirs", False)])
def test_keras_without_its_backend_is_told_which_to_take(
    module: str, named: bool, recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("keras", "tensorflow"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{module}.py").write_text("raise ModuleNotFoundError('No tensorflow', name='tensorflow')")
    program = tmp_path / "program.py"
    program.write_text(f"import {module}")
    with pytest.raises(ModuleNotFoundError) as caught:
        main(["migrate", "prove", "old.py", str(program), "--recorded", str(recording)])
    assert ["KERAS_BACKEND=jax" in note for note in getattr(caught.value, "__notes__", [])] == [True] * named
