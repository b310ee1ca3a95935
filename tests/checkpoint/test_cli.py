"""Tests of the output of `estimator checkpoints`."""

import json
import subprocess
import sys

import numpy as np
import pytest

from estimator_core._checkpoint import CheckpointItems, CheckpointStore
from estimator_core._cli import checkpoints
from estimator_core._cli.run_module import run_module
from estimator_core.errors import CheckpointNotFoundError


@pytest.fixture
def model_dir(tmp_path):
    with CheckpointStore(tmp_path) as store:
        for step in (5, 10):
            store.save(
                step,
                CheckpointItems(
                    clock=np.array([step, 0, 0, 0], np.uint32),
                    variables={"dense/kernel": np.full((64, 10), step, np.float32), "dense/bias": np.zeros(step)},
                    model_state={"count": np.array(3)},
                    manifest={"plugins": {"heads": "1.2"}},
                ),
            )
    return tmp_path


def printed(capsys, *arguments):
    assert run_module(checkpoints, "checkpoints", [str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_the_list(model_dir, capsys):
    head, first, second = printed(capsys, model_dir).splitlines()
    assert head.split() == ["step", "saved", "MB", "variables", "parameters", "path"]
    assert first.split()[0] == "5"
    assert second.split()[0] == "10"
    assert second.split()[-4:] == ["0.0", "3", "650", str(model_dir / "checkpoints" / "10")]
    rows = json.loads(printed(capsys, model_dir, "--json"))
    assert [(row["step"], row["variables"], row["parameters"]) for row in rows] == [(5, 3, 645), (10, 3, 650)]


def test_a_damaged_one_is_listed_as_such(model_dir, capsys):
    (model_dir / "checkpoints" / "5" / "manifest.json").write_text("{")
    text = printed(capsys, model_dir)
    assert "DAMAGED" in text
    assert "its manifest cannot be trusted" in text
    assert [row.get("step") for row in json.loads(printed(capsys, model_dir, "--json"))] == [None, 10]


def test_variables(model_dir, capsys):
    lines = [line.split() for line in printed(capsys, model_dir, "--variables").splitlines()]
    assert lines == [
        ["variable", "shape", "dtype", "trained"],
        ["dense/bias", "10", "float64", "yes"],
        ["dense/kernel", "64x10", "float32", "yes"],
        ["count", "scalar", "int64", "no"],
        ["650", "trained", "parameters"],
    ]
    (bias, *_) = json.loads(printed(capsys, model_dir / "checkpoints" / "5", "--variables", "--json"))
    assert bias == {"name": "dense/bias", "shape": [5], "dtype": "float64", "bytes": 40, "trainable": True}


def test_the_manifest(model_dir, capsys):
    manifest = json.loads(printed(capsys, model_dir, "--manifest", "--json"))
    assert manifest["step"] == 10
    assert manifest["extras"] == {"plugins": {"heads": "1.2"}}
    assert manifest["arrays"]["variables"] == "2 arrays"
    assert '"heads": "1.2"' in printed(capsys, model_dir, "--manifest")


def test_the_difference_of_two(model_dir, capsys):
    text = printed(capsys, model_dir, "--diff", "5", "10")
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "model_state: 0 of 1 common arrays differ in contents",
        "opt_state: 0 of 0 common arrays differ in contents",
        "variables: 2 of 2 common arrays differ in contents",
        "shape differs: dense/bias 5 float64[5], 10 float64[10]",
    ]
    rows = json.loads(printed(capsys, model_dir, "--diff", "5", model_dir / "checkpoints" / "10", "--json"))
    assert sorted(rows["variables"]["contents"]) == ["dense/bias", "dense/kernel"]
    assert rows["variables"]["shape"] == {"dense/bias": ["float64[5]", "float64[10]"]}


def test_what_is_not_there_is_said(model_dir, tmp_path):
    with pytest.raises(CheckpointNotFoundError, match=r"no checkpoint '7': .* has the steps 5, 10"):
        run_module(checkpoints, "checkpoints", [str(model_dir), "--diff", "5", "7"])
    with pytest.raises(CheckpointNotFoundError, match="There is no checkpoint in"):
        run_module(checkpoints, "checkpoints", [str(tmp_path / "nothing")])


@pytest.mark.parametrize("options", [(), ("--variables",), ("--manifest",)])
def test_an_export_is_no_checkpoint(tmp_path, options):
    (tmp_path / "manifest.json").write_text('{"format": "stablehlo", "files": {}}')
    with pytest.raises(CheckpointNotFoundError, match="is an export, not a checkpoint"):
        run_module(checkpoints, "checkpoints", [str(tmp_path), *options])


def test_it_starts_without_jax_and_orbax(model_dir):
    program = (
        "import argparse, sys; from estimator_core._cli import checkpoints as c; p = argparse.ArgumentParser(); "
        "c.configure(p); c.run(p.parse_args(sys.argv[1:])); assert not {'jax', 'orbax'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(model_dir), "--variables"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "dense/kernel" in done.stdout
