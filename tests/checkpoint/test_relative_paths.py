"""Tests of a model_dir relative to the working directory or to `~`: it works like an absolute one, even if the working
directory changes.
"""

import os

import estimator_core as ec
from estimator_core._checkpoint import CheckpointStore
from estimator_core._checkpoint.read import read_checkpoint
from estimator_core._summaries.eval_metrics import append_eval_metrics
from estimator_core.checkpoint import all_checkpoints, being_written, list_variables
from estimator_core.cli import main


def test_a_relative_model_dir_is_written_and_read(tmp_path, monkeypatch, small_items, assert_same):
    monkeypatch.chdir(tmp_path)
    with CheckpointStore("runs/line") as store:
        store.save(3, small_items(3)).wait()
    assert_same(read_checkpoint("runs/line"), small_items(3))
    assert_same(read_checkpoint("runs/line/checkpoints/3"), small_items(3))


def test_a_change_of_directory_moves_no_checkpoint(tmp_path, monkeypatch, small_items, assert_same):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with CheckpointStore("run") as store:
        monkeypatch.chdir("elsewhere")
        store.save(3, small_items(3)).wait()
    assert_same(read_checkpoint(tmp_path / "run"), small_items(3))
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_home_directory_is_found_by_all_that_read_a_run(tmp_path, monkeypatch, small_items, assert_same, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with CheckpointStore(tmp_path / "run") as store:
        store.save(3, small_items(3)).wait()
    append_eval_metrics(tmp_path / "run" / "eval", 3, {"loss": 0.5}, None)
    place = f"{tmp_path}/run/checkpoints/3"
    assert ec.latest_checkpoint("~/run") == place
    assert all_checkpoints("~/run") == [place]
    assert not being_written("~/run", 3)
    for named in ("~/run", "~/run/checkpoints/3"):
        assert_same(read_checkpoint(named), small_items(3))
        assert list_variables(named) == list_variables(place)
    assert ec.read_eval_metrics("~/run/eval") == {3: {"loss": 0.5}}
    assert main(["checkpoints", "~/run"]) == 0
    assert place in capsys.readouterr().out.replace("~", str(tmp_path))
    assert main(["audit", "~/run"]) == 1  # the store of this test keeps no journal
    assert "does not exist: the directory" not in capsys.readouterr().err
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_name_that_begins_with_a_tilde_is_a_name(tmp_path, monkeypatch, small_items, assert_same):
    monkeypatch.chdir(tmp_path)
    with CheckpointStore("~run") as store:
        store.save(3, small_items(3)).wait()
    assert_same(read_checkpoint("~run"), small_items(3))
    assert ec.latest_checkpoint("~run") == "~run/checkpoints/3"


def test_a_model_dir_may_be_called_checkpoints(tmp_path, small_items, assert_same, capsys):
    """Its checkpoints were looked for in the directory above."""
    for named in (tmp_path / "checkpoints", tmp_path / "run"):
        with CheckpointStore(named) as store:
            store.save(3, small_items(3)).wait()
        assert_same(read_checkpoint(named), small_items(3))
        assert_same(read_checkpoint(named / "checkpoints"), small_items(3))
        for where in (named, named / "checkpoints"):
            assert main(["checkpoints", str(where)]) == 0
            assert f"{named}/checkpoints/3" in capsys.readouterr().out
