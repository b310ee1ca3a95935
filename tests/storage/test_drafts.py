"""Tests of files that appear whole: the state after a kill, and which drafts are removed."""

import os
import subprocess
import sys
import time

import pytest

from estimator_core import _files
from estimator_core._files import draft_name
from estimator_core.storage import draft_of

_KILLED = """
import os, signal, sys
from pathlib import Path
from estimator_core.storage import draft_of
with draft_of(sys.argv[1]) as draft:
    Path(draft).write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def write(path, text):
    with draft_of(path) as draft:
        draft.write_text(text)


def test_the_call_after_a_kill_leaves_one_file(tmp_path):
    path = tmp_path / "best.json"
    write(path, "old")
    assert subprocess.run([sys.executable, "-c", _KILLED, path], timeout=60).returncode == -9
    assert path.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2
    write(path, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["best.json"]
    assert path.read_text() == "new"


def test_drafts_of_other_machines_stay_for_a_week(tmp_path):
    _, _, *rest = draft_name().split("-")
    new, old = ("-".join([".draft", machine * 12, *rest]) for machine in "ab")
    for name in (new, old, ".draft-of-a-letter"):
        (tmp_path / name).touch()
    for name in (old, ".draft-of-a-letter"):
        os.utime(tmp_path / name, (0, 0))
    write(tmp_path / "page.html", "page")
    assert set(os.listdir(tmp_path)) == {new, ".draft-of-a-letter", "page.html"}


@pytest.mark.parametrize("age", [0, 8 * 86400])
def test_a_draft_of_another_user_stays_where_the_system_hides_processes(tmp_path, monkeypatch, age):
    """/proc with hidepid does this. It is unknown whether the writer runs, so the time of the last change decides."""
    hidden = draft_name().replace(f"-{os.getpid()}-", "-4194999-")  # larger than any id that Linux assigns
    (tmp_path / hidden).touch()
    os.utime(tmp_path / hidden, (time.time() - age,) * 2)

    def kill(pid, number):
        raise PermissionError(pid, number)

    monkeypatch.setattr(_files.os, "kill", kill)
    write(tmp_path / "page.html", "page")
    assert (tmp_path / hidden).exists() == (age == 0)


def test_a_draft_of_a_running_writer_stays(tmp_path):
    path = tmp_path / "scores.csv"
    with draft_of(path) as draft:
        draft.write_text("first")
        write(path, "second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["scores.csv"]


def test_an_error_leaves_the_old_file(tmp_path):
    write(tmp_path / "a.npz", "old")

    def fail():
        with draft_of(tmp_path / "a.npz") as draft:
            assert draft.suffix == ".npz"
            draft.write_text("half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        fail()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_directory_appears_as_a_whole(tmp_path):
    with draft_of(tmp_path / "encoded") as draft:
        draft.mkdir()
        (draft / "tokens").write_text("1 2")
        assert not (tmp_path / "encoded").exists()
    assert (tmp_path / "encoded" / "tokens").read_text() == "1 2"
    assert os.listdir(tmp_path) == ["encoded"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_durable_file_is_on_the_disk_before_it_appears(tmp_path, monkeypatch, durable):
    flushed = []
    monkeypatch.setattr(_files, "flush", lambda path: flushed.append((path.suffix, (tmp_path / "a.json").exists())))
    with draft_of(tmp_path / "a.json", durable=durable) as draft:
        draft.write_text("{}")
    assert flushed == ([(".json", False), (tmp_path.suffix, True)] if durable else [])
