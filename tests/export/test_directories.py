"""Tests of the names, order, atomic creation and deletion of export directories."""

import os
import threading

import pytest

from estimator_core._export.directories import collect_garbage, exports_in, latest_export, new_export
from estimator_core._files import draft_name, identity, process_start


def write(base, content="x"):
    with new_export(base) as (directory, final):
        (directory / "file").write_text(content)
    return final[0]


@pytest.fixture
def clock(monkeypatch):
    """A stopped clock."""
    monkeypatch.setattr("estimator_core._export.directories.time.time", lambda: 1_700_000_000.5)


@pytest.mark.usefixtures("clock")
def test_exports_of_one_second_are_all_kept_in_their_order(tmp_path):
    paths = [write(tmp_path, str(number)) for number in range(4)]
    assert [path.name for path in paths] == ["1700000000", "1700000001", "1700000002", "1700000003"]
    assert exports_in(tmp_path) == paths


@pytest.mark.usefixtures("clock")
def test_a_name_that_was_deleted_is_not_given_again_to_a_newer_export(tmp_path):
    for number in range(6):
        newest = write(tmp_path, str(number))
        collect_garbage(tmp_path, 2)
        assert latest_export(tmp_path) == str(newest)
    assert [path.joinpath("file").read_text() for path in exports_in(tmp_path)] == ["4", "5"]


def test_only_names_of_ten_digits_count_and_others_stay(tmp_path):
    """This is case 45 of the reference."""
    others = ["160000000", "16000000044", "temp-1600000005", "notes", "١٦٠٠٠٠٠٠٠٠"]
    for name in ("1600000001", "1600000002", "1600000003", "1600000004", *others):
        (tmp_path / name).mkdir()
    assert len(collect_garbage(tmp_path, 2)) == 2
    assert sorted(os.listdir(tmp_path)) == sorted(["1600000003", "1600000004", *others])
    assert collect_garbage(tmp_path, None) == []


def test_a_failed_export_leaves_nothing(tmp_path):
    def fail():
        with new_export(tmp_path) as (directory, _):
            (directory / "half").touch()
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        fail()
    assert os.listdir(tmp_path) == []


def test_nothing_of_an_export_is_listed_before_it_is_complete(tmp_path):
    with new_export(tmp_path) as (directory, _):
        (directory / "half").touch()
        assert exports_in(tmp_path) == []
        assert latest_export(tmp_path) is None
    assert len(exports_in(tmp_path)) == 1


def test_what_a_dead_writer_left_is_removed_and_a_living_ones_is_not(tmp_path):
    name = draft_name("temp-")
    mine = f"-{os.getpid()}-{identity(os.getpid())[1]}-"
    living = name.replace(mine, f"-{os.getppid()}-{process_start(os.getppid())}-")
    followed = name.replace(mine, f"-{os.getppid()}-1-")  # a later process has the same id
    for one in (living, followed, "temp-notes"):
        (tmp_path / one).mkdir()
    write(tmp_path)
    assert {path.name for path in tmp_path.glob("temp-*")} == {living, "temp-notes"}


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    threads = [threading.Thread(target=write, args=(tmp_path, str(number))) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.joinpath("file").read_text() for path in exports_in(tmp_path)) == sorted(map(str, range(12)))


def test_latest_export_looks_into_the_exporters_directories(tmp_path):
    assert latest_export(tmp_path / "missing") is None
    (tmp_path / "best" / "1600000001").mkdir(parents=True)
    (tmp_path / "final" / "1600000002").mkdir(parents=True)
    assert latest_export(tmp_path) == str(tmp_path / "final" / "1600000002")
