"""Tests of `estimator run`, `evaluate` and `export` for a model_dir at a URL: they work as with a path."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.checkpoint import load_variables
from estimator_core.cli import main

pytestmark = pytest.mark.plugins  # other packages provide the storage and the format

PROGRAM = """
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec

HPARAMS = ec.HParams(rate=0.3, train_steps=4)


def model_fn(features, labels, mode, params):
    y = features["x"] * ec.get_variable("slope", ())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(params.rate))


def experiment_fn(run_config, hparams):
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    inputs = dict(x={"x": x}, y=3 * x, batch_size=8, shuffle=False)
    return ec.Experiment(
        ec.Estimator(model_fn, config=run_config.replace(default_hooks=False), params=hparams),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=None),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=1),
        train_steps=hparams.train_steps,
        eval_delay_secs=0,
    )


serving_input_receiver_fn = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None,))})
"""
RUN = ["run", "line.py", "--hparams", "rate=0.1", "--set", "run_config.save_checkpoints_steps=2", "--predictions", "0"]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "line.py").write_text(PROGRAM)
    url = f"file://{tmp_path}/store/line"
    words = [*RUN, "--model-dir", url, "--exporter", "final"]
    monkeypatch.setattr("sys.argv", ["estimator", *words])
    assert main(words) == 0
    return url


def test_exports_of_a_run_are_told_where_they_are(capsys: pytest.CaptureFixture[str], url: str) -> None:
    output = capsys.readouterr().out
    (export,) = Path(url.removeprefix("file://"), "export", "final").glob("*")
    line = f"exports      {url}/export/final/{export.name}        view: estimator exports {url}/export"
    assert line in output.splitlines()
    assert main(["exports", f"{url}/export"]) == 0


def test_every_checkpoint_is_evaluated_as_the_run_record_says(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["evaluate", "--model-dir", url, "--checkpoint", "all", "--json"]) == 0
    assert [found["global_step"] for found in json.loads(capsys.readouterr().out)] == [0, 2, 4]
    assert main(["evaluate", "line.py", "--hparams", "rate=0.1", "--model-dir", url]) == 0
    written = f"{url}/eval_one_pass/metrics.jsonl"
    assert capsys.readouterr().out.endswith(f"written to {written}\n")
    assert len(Path(written.removeprefix("file://")).read_text().splitlines()) >= 3
    assert main(["evaluate", "--model-dir", url, "--checkpoint", "3"]) == 2
    assert f"--checkpoint 3: {url} has no checkpoint of this step. Steps: [0, 2, 4]." in capsys.readouterr().err
    assert main(["evaluate", "line.py", "--model-dir", f"{url}/other"]) == 2
    assert f"There is no directory {url.removeprefix('file://')}/other. Correct the path." in capsys.readouterr().err
    assert not Path(url.removeprefix("file://"), "other").exists()
    Path(url.removeprefix("file://"), "empty").mkdir()
    assert main(["evaluate", "line.py", "--model-dir", f"{url}/empty"]) == 2
    assert f"There is no checkpoint in {url}/empty. Train first" in capsys.readouterr().err


def test_other_hyperparameters_than_in_the_run_record_are_told(url: str, caplog: pytest.LogCaptureFixture) -> None:
    assert main(["evaluate", "line.py", "--model-dir", url]) == 0
    assert f"{url} was trained with rate=0.1, not 0.3." in caplog.text


def test_a_checkpoint_is_exported_to_the_url(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["export", "line.py", "--model-dir", url, "--checkpoint", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"].startswith(f"{url}/export/command/")
    assert told["checkpoint"] == f"{url}/checkpoints/2"
    slope = load_variables(f"{url}/checkpoints/2")["slope"]
    y = ec.export.load(told["path"]).signatures["serving_default"](x=np.float32([2]))["y"]
    assert y[0] == 2 * slope


@pytest.mark.parametrize("schedule", ["continuous_train_and_eval", "continuous_eval", "test"])
def test_every_schedule_exports_to_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "line.py").write_text(PROGRAM)
    words = [*RUN, "--model-dir", f"file://{tmp_path}/store"]
    if schedule == "continuous_eval":
        assert main([*words, "--schedule", "train"]) == 0
    assert main([*words, "--exporter", "final", "--schedule", schedule]) == 0
    (export,) = (tmp_path / "store" / "export" / "final").glob("*")
    y = ec.export.load(export).signatures["serving_default"](x=np.ones(1, np.float32))["y"]
    assert y == load_variables(f"file://{tmp_path}/store")["slope"]
