"""A model_dir relative to the working directory serves as well as an absolute one, also when that directory changes."""

from estimator_core._checkpoint import CheckpointStore
from estimator_core._checkpoint.read import read_checkpoint


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
