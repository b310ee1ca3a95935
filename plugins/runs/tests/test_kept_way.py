"""Tests that the measured way of training is stored when it is chosen, so that no start changes it during training."""

import json
from pathlib import Path

import pytest
from line_files import CODE, TOML
from test_crossval import CROSSVAL, MORE

from estimator_runs import open_folds, open_population, run_folds, run_population
from estimator_runs.population import training

pytest.importorskip("sklearn.model_selection")

POPULATION = "\n[population]\nseeds = 2\n"


def fold_by_fold(path):
    run_folds(open_folds(path, Path("many"), ["crossval.way=auto", "crossval.folds=2"]))


def seed_by_seed(path):
    run_population(open_population(path, Path("many")))


@pytest.mark.parametrize("start", [fold_by_fold, seed_by_seed])
def test_killed_after_its_first_checkpoint_it_keeps_its_way(tmp_path, monkeypatch, start):
    monkeypatch.chdir(tmp_path)
    Path("line_code.py").write_text(CODE + MORE)
    path = Path("line.toml")
    path.write_text(TOML + CROSSVAL + POPULATION)
    save = training.save

    def killed(one):
        save(one)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(training, "save", killed)
        patched.setattr(training, "fastest", lambda ways, states, row: "apart")
        with pytest.raises(KeyboardInterrupt):
            start(path)
    assert json.loads(Path("many/way.json").read_text()) == "apart"
    monkeypatch.setattr(training, "fastest", lambda ways, states, row: pytest.fail("it is measured again"))
    start(path)
    assert json.loads(Path("many/way.json").read_text()) == "apart"
