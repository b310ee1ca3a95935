"""Tests of directories that are refused before anything is written: URLs, and directories of other trials."""

from pathlib import Path

import pytest
from line_files import TOML, write_line

from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_runs import open_folds, open_population, open_search

pytest.importorskip("optuna")

TABLES = """
[sweep]
trials = 1
objectives = [{ metric = "error", mode = "min" }]
space = { "hparams.rate" = { low = 0.1, high = 0.5 } }

[population]
seeds = 2
"""


@pytest.fixture
def line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_line(tmp_path, TOML + TABLES)


def written(folder):
    return sorted(str(path) for path in folder.rglob("*") if "__pycache__" not in str(path))


@pytest.mark.parametrize("command", ["sweep", "crossval", "population"])
@pytest.mark.parametrize("url", ["file:///runs/here", "s3://bucket/here"])
def test_a_url_is_refused(line, command, url, capsys):
    """Otherwise locks and plans would be in a local folder with the name of the URL, and checkpoints at the URL."""
    before = written(Path())
    with pytest.raises(SystemExit):
        main([command, "line.toml", "--dir", url])
    assert f"{url} is a URL, but this command needs a path on this machine" in capsys.readouterr().err
    opened = {"sweep": open_search, "crossval": open_folds, "population": open_population}[command]
    with pytest.raises(ArgumentError, match="is a URL, but locks need a directory"):
        opened(line, Path(url))
    assert written(Path()) == before


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (open_search, open_population, "here holds a sweep, according to here/sweep.json"),
        (open_population, open_search, "here holds a population, according to here/population.json"),
    ],
)
def test_trials_of_another_kind_are_refused(line, first, second, told):
    first(line, Path("here"))
    before = written(Path())
    with pytest.raises(ArgumentError) as caught:
        second(line, Path("here"))
    assert str(caught.value) == f"{told}. Give another directory (--dir)."
    assert written(Path()) == before


def test_a_stray_note_of_an_earlier_version_can_be_deleted(line):
    open_search(line, Path("here"))
    stray = Path("here/population.json")
    stray.write_text("{}")
    with pytest.raises(ArgumentError, match=r"If it holds a sweep, delete here/population\.json"):
        open_search(line, Path("here"))
    stray.unlink()
    open_search(line, Path("here"))
