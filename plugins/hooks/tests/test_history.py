"""Tests of HistoryHook and the tables: the values of every step, on disk, with kills and several steps per dispatch."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import estimator_hooks as eh
from estimator_core._builtin_hooks.history import History
from estimator_core.testing import FakeRun, drive

OUTPUTS = {"loss": lambda step: np.float32(1 / step), "rate": lambda step: np.float32(step)}


@pytest.mark.parametrize("k", [1, 4, 50])
def test_rows(tmp_path: Path, k: int):
    drive([eh.HistoryHook(3)], steps=10, outputs=OUTPUTS, run=FakeRun(model_dir=tmp_path), steps_per_dispatch=k)
    rows = eh.read_history(tmp_path)
    assert [row["step"] for row in rows] == [3, 6, 9]
    assert rows[1] == {"step": 6, "loss": pytest.approx(1 / 6), "rate": 6.0}
    with (tmp_path / "history.csv").open(newline="") as file:
        assert [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)] == rows


@pytest.mark.parametrize("killed_after", [0, 4])
def test_resume_has_every_row_once(tmp_path: Path, killed_after: int):
    first = FakeRun(model_dir=tmp_path)
    drive([eh.HistoryHook(2)], steps=7, outputs=OUTPUTS, run=first)
    drive([eh.HistoryHook(2)], steps=killed_after, outputs=OUTPUTS, run=FakeRun(model_dir=tmp_path, step=7))
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"step": 12, "lo')  # torn by the kill
    drive([eh.HistoryHook(2)], steps=7, outputs=OUTPUTS, run=FakeRun(model_dir=tmp_path, step=7))
    assert [row["step"] for row in eh.read_history(tmp_path)] == [2, 4, 6, 8, 10, 12, 14]


def test_a_process_that_is_not_chief_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cluster = {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    drive([eh.HistoryHook(2)], steps=7, outputs=OUTPUTS, run=FakeRun(model_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_save_history(tmp_path: Path):
    history = History(train=[{"step": 100, "loss": 0.5}, {"step": 200, "loss": 0.25, "rate": 1.0}])
    history.add_evaluation("val", {"global_step": 200, "accuracy": 0.9})
    eh.save_history(history, tmp_path)
    assert eh.read_history(tmp_path / "train") == history.train
    assert eh.read_history(tmp_path / "evaluations") == [{"name": "val", "global_step": 200, "accuracy": 0.9}]
    assert (tmp_path / "train" / "history.csv").read_text().splitlines() == [
        "step,loss,rate",
        "100,0.5,",
        "200,0.25,1.0",
    ]


@pytest.mark.libraries
def test_to_dataframe():
    table = eh.to_dataframe([{"step": 100, "loss": 0.5}, {"step": 200, "loss": 0.25}])
    assert table.index.tolist() == [100, 200]
    assert table.loc[200, "loss"] == 0.25
    evaluations = eh.to_dataframe([{"name": None, "global_step": 10, "accuracy": 0.9}])
    assert evaluations.loc[10, "accuracy"] == 0.9
