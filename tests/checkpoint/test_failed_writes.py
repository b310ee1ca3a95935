"""Tests of full disks, missing permissions and deleted directories: the message is helpful, and no good checkpoint is
lost.
"""

import errno
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from estimator_core._checkpoint import CheckpointItems, CheckpointStore, commit, latest_checkpoint, orbax_io
from estimator_core._checkpoint.read import read_checkpoint
from estimator_core.errors import CheckpointError


@pytest.fixture
def no_pause(monkeypatch):
    monkeypatch.setattr(commit, "_PAUSE_SECS", 0)


def fail_at(monkeypatch, module, name, call, error, times=2):
    """Makes `module.name` raise at call number `call` (from 0) of an attempt to write, in `times` attempts."""
    real, calls = getattr(module, name), []

    def failing(*args, **kwargs):
        calls.append(args)
        attempt, index = divmod(len(calls) - 1, call + 1)
        if index == call and attempt < times:
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, failing)
    return calls


FULL = OSError(errno.ENOSPC, "No space left on device")
TENSORSTORE_FULL = ValueError("RESOURCE_EXHAUSTED: Failed to write: [OS error 28: No space left on device]")


@pytest.mark.parametrize(
    ("module", "name", "call", "error"),
    [
        (orbax_io, "write_arrays", 0, FULL),
        (orbax_io, "write_arrays", 0, TENSORSTORE_FULL),
        (commit, "write_durably", 0, FULL),
        (commit, "write_durably", 1, FULL),
        (commit, "write_manifest", 0, FULL),
        (os, "fsync", 0, FULL),
        (os, "fsync", 1, FULL),
        (os, "fsync", 2, FULL),
    ],
)
def test_a_full_disk_is_named_and_costs_one_checkpoint(
    saved, small_items, assert_same, monkeypatch, no_pause, module, name, call, error
):
    with CheckpointStore(saved) as store:
        with monkeypatch.context() as patch:
            fail_at(patch, module, name, call, error)
            pending = store.save(3, small_items(3))
            with pytest.raises(CheckpointError) as caught:
                pending.wait()
        text = str(caught.value)
        assert f"could not be written to {saved / 'checkpoints'} " in text
        assert "No space left on device" in text
        assert "It needs 0.0 MB, " in text
        assert (
            "are free. Existing checkpoints are untouched. The next training continues from the newest, if any. "
            "Free some space" in text
        )
        assert sorted(path.name for path in (saved / "checkpoints").iterdir()) == ["1", "2"]
        assert_same(read_checkpoint(saved), small_items(2))
        store.save(4, small_items(4))  # space is back
    assert_same(read_checkpoint(saved), small_items(4))


class FullDisk:
    """Makes each change in a directory that needs space fail, from the n-th change by Python code on."""

    def __init__(self) -> None:
        self.root: str | None = None
        self.first = self.count = 0
        sys.addaudithook(self._audit)  # stays for the life of the process, and is idle without a root

    def _audit(self, event, args):
        if self.root is None or event not in ("open", "os.mkdir", "os.rename"):
            return
        if event == "open" and not (isinstance(args[1], str) and set(args[1]) & set("wax+")):
            return
        if str(args[0]).startswith(self.root):
            self.count += 1
            if self.count > self.first:
                raise FULL


def test_a_disk_that_is_full_from_any_change_on(tmp_path, small_items, assert_same, no_pause):
    disk = FullDisk()

    def save_with_room_for(changes):
        run = tmp_path / str(changes)
        with CheckpointStore(run) as store:
            store.save(1, small_items(1)).wait()
            disk.first, disk.count, disk.root = changes, 0, str(run / "checkpoints")
            pending = store.save(2, small_items(2))
            while not pending.done():
                time.sleep(0.001)
            disk.root = None  # space is back
            if pending.error is None:
                return True
            with pytest.raises(CheckpointError, match="No space left on device"):
                pending.wait()
            assert latest_checkpoint(run) == str(run / "checkpoints" / "1")
            assert_same(read_checkpoint(run), small_items(1))
            store.save(3, small_items(3)).wait()
        assert_same(read_checkpoint(run), small_items(3))
        return False

    failed = 0
    while not save_with_room_for(failed):
        failed += 1
    assert failed >= 5


def test_a_failure_that_passes_costs_nothing(saved, small_items, assert_same, monkeypatch, no_pause, caplog):
    fail_at(monkeypatch, orbax_io, "write_arrays", 0, OSError(errno.EIO, "Input/output error"), times=1)
    with CheckpointStore(saved) as store:
        store.save(3, small_items(3))
    assert_same(read_checkpoint(saved), small_items(3))
    assert "the write is retried once" in caplog.text


def test_too_little_space_is_refused_before_anything_is_written(saved, small_items, monkeypatch, no_pause):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6 - 1000, 1000))
    written = []
    monkeypatch.setattr(orbax_io, "write_arrays", lambda *arguments: written.append(arguments))
    with (
        CheckpointStore(saved) as store,
        pytest.raises(CheckpointError, match=r"No space left on device.*needs 0\.0 MB, 0\.0 MB are free"),
    ):
        store.save(3, small_items(3)).wait()
    assert written == []
    assert sorted(path.name for path in (saved / "checkpoints").iterdir()) == ["1", "2"]


@pytest.mark.parametrize(
    ("code", "cure"),
    [(errno.EACCES, "Change the permissions"), (errno.EROFS, "read-only. Use a model_dir that can be written")],
)
def test_missing_rights_are_not_tried_twice(saved, small_items, monkeypatch, code, cure):
    calls = fail_at(monkeypatch, orbax_io, "write_arrays", 0, OSError(code, os.strerror(code)))
    with CheckpointStore(saved) as store, pytest.raises(CheckpointError, match=cure):
        store.save(3, small_items(3)).wait()
    assert len(calls) == 1


def test_a_directory_that_vanishes_comes_back_with_the_next_checkpoint(saved, small_items, assert_same):
    with CheckpointStore(saved) as store:
        shutil.rmtree(saved)
        store.save(3, small_items(3))
    assert_same(read_checkpoint(saved), small_items(3))


def test_a_directory_that_vanishes_under_way(saved, small_items, assert_same, monkeypatch, no_pause, caplog):
    real = commit.sync_directory
    vanished = []

    def vanish_once(path):
        if not vanished:
            vanished.append(path)
            shutil.rmtree(saved)
        real(path)

    monkeypatch.setattr(commit, "sync_directory", vanish_once)
    with CheckpointStore(saved) as store:
        store.save(3, small_items(3))
    assert_same(read_checkpoint(saved), small_items(3))
    assert vanished
    assert "FileNotFoundError" in caplog.text or "No such file" in caplog.text


def test_a_model_dir_that_is_a_file(tmp_path, small_items, no_pause):
    (tmp_path / "run").write_text("no directory")
    with (
        CheckpointStore(tmp_path / "run") as store,
        pytest.raises(CheckpointError, match=r"could not be written to .*run"),
    ):
        store.save(1, small_items(1)).wait()
    assert (tmp_path / "run").read_text() == "no directory"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # orbax, of futures it gave up
def test_a_real_full_file_system(tmp_path, no_pause):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("this user may not mount a tmpfs")
    try:
        check_full_file_system(disk)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def check_full_file_system(disk):
    def items(step):
        variables = {str(i): np.full(100_000, step, np.float32) for i in range(4)}  # 1.6 MB
        return CheckpointItems(clock=np.array([step, 0, 0, 0], np.uint32), variables=variables)

    with CheckpointStore(disk) as store:
        store.save(1, items(1))
        with pytest.raises(CheckpointError, match=r"needs 1\.6 MB, 1\.\d MB are free"):
            store.save(2, items(2)).wait()
        with pytest.MonkeyPatch.context() as patch:  # without the check in advance, the writes themselves fail
            patch.setattr(commit, "_require_space", lambda *_: None)
            with pytest.raises(CheckpointError, match=r"(?i)no space left on device.*needs 1\.6 MB"):
                store.save(2, items(2)).wait()
        assert latest_checkpoint(disk) == str(disk / "checkpoints" / "1")
        assert (read_checkpoint(disk).variables["3"] == 1).all()
        assert [path.name for path in (disk / "checkpoints").iterdir()] == ["1"]
