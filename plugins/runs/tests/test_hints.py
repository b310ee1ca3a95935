"""Tests that the next command in a message can be pasted into a shell, even if a path contains a space."""

import shlex
from pathlib import Path

import pytest
from line_files import CODE, TOML
from test_runs import leave

from estimator_core.cli import main

TABLES = """
[population]
seeds = 1

[sweep]
trials = 1
objectives = [{ metric = "loss", mode = "min" }]
space = { "hparams.rate" = { low = 0.1, high = 0.3 } }
"""


@pytest.mark.parametrize(
    ("command", "following"),
    [("population", ["runs", "compare", "my runs"]), ("sweep", ["run", "my runs/best.toml"])],
)
def test_paths_with_a_blank_are_quoted(tmp_path, monkeypatch, capsys, command, following):
    if command == "sweep":
        pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    Path("line_code.py").write_text(CODE)
    Path("line.toml").write_text(TOML.replace("max_steps = 20", "max_steps = 2") + TABLES)
    assert main([command, "line.toml", "--dir", "my runs"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(last) == ["next", "estimator", *following]


def test_the_command_for_several_tags_is_quoted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    leave("my runs/1", [1.0], seed=1, rate=0.1)
    assert main(["runs", "tag", "my runs/1", "my runs"]) == 2
    assert "estimator runs tag 'my runs/1' 'my runs' --tag good" in capsys.readouterr().err
