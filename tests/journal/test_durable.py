"""Tests of durability: files that a record counts are on disk before the record is written, and the journal does not
wait for other files.
"""

import errno
import os
import stat
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from estimator_core._checkpoint import CheckpointItems, CheckpointStore, journal_shelf
from estimator_core._checkpoint.journal_shelf import JournalShelf
from estimator_core._journal.entries import Evaluated
from estimator_core._journal.reading import read_lineage
from estimator_core._journal.writer import Journal as RealJournal
from estimator_core._journal.writer import take_over
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.result_log import ObserverLedger, WriterLedger
from estimator_core._storage.contract import StorageError
from estimator_core._storage.local import LocalStorage
from estimator_core._summaries import open_summary_writer


@pytest.fixture
def synced(monkeypatch):
    """The inodes that were flushed to the disk."""
    seen = set()
    original = os.fsync

    def fsync(descriptor):
        seen.add(os.fstat(descriptor).st_ino)
        original(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


@pytest.fixture
def at_publish(monkeypatch, synced):
    """The inodes that were flushed before each record of segments was written."""
    told = []
    original = RealJournal.publish

    def publish(self, *entries):
        told.append(set(synced))
        return original(self, *entries)

    monkeypatch.setattr(RealJournal, "publish", publish)
    return told


def a_point(directory, step):
    """Writes one point and returns the inode of its file."""
    writer = open_summary_writer(directory)
    writer.scalar("loss", 0.5, step)
    writer.flush()
    (path,) = directory.glob("events*")
    return writer, path.stat().st_ino


def test_a_flush_waits_for_no_disk_and_a_record_does(tmp_path, synced, at_publish):
    journal = take_over(LocalStorage(tmp_path), "one", lambda lineage: 0)
    writer, file = a_point(tmp_path / "eval", 0)
    assert file not in synced
    WriterLedger(journal, tmp_path, 0, DeviceState()).record(Evaluated(name="", step=0, metrics={}))
    assert file in at_publish[-1]
    writer.close()


def test_what_the_end_of_a_run_records_is_on_the_disk(tmp_path, at_publish):
    journal = take_over(LocalStorage(tmp_path), "one", lambda lineage: 0)
    writer, file = a_point(tmp_path, 3)
    WriterLedger(journal, tmp_path, 0, DeviceState()).end(3, "input", failed=False)
    assert file in at_publish[-1]
    writer.close()


def test_what_an_observer_records_is_on_the_disk(tmp_path, synced):
    take_over(LocalStorage(tmp_path), "one", lambda lineage: 0)
    writer, file = a_point(tmp_path / "eval", 0)
    ObserverLedger(tmp_path).record(Evaluated(name="", step=0, metrics={}))
    assert file in synced
    writer.close()


def flushed_in_pairs(monkeypatch):
    """Records what is flushed and named from now on, in order. Two files must be flushed at the same time."""
    told, both = [], threading.Barrier(2, timeout=20)
    flush, name = os.fsync, os.link

    def fsync(descriptor):
        found = os.fstat(descriptor)
        if not stat.S_ISDIR(found.st_mode):
            both.wait()
            flush(descriptor)
            told.append(found.st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", lambda draft, path: (told.append("named"), name(draft, path)))
    return told


def test_an_observer_flushes_points_and_record_at_once_and_names_the_record_after_both(tmp_path, monkeypatch):
    take_over(LocalStorage(tmp_path), "one", lambda lineage: 0)
    writer, file = a_point(tmp_path / "eval", 0)
    told = flushed_in_pairs(monkeypatch)
    with closing(writer):
        ObserverLedger(tmp_path).record(Evaluated(name="", step=0, metrics={}))
    assert file in told[:2]
    assert told[2:] == ["named"]


def test_a_result_whose_points_cannot_be_flushed_is_not_recorded(tmp_path, monkeypatch):
    take_over(LocalStorage(tmp_path), "one", lambda lineage: 0)
    writer, file = a_point(tmp_path / "eval", 0)
    flush = os.fsync

    def fsync(descriptor):
        if os.fstat(descriptor).st_ino == file:
            raise OSError(errno.EIO, "the disk is broken")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with closing(writer), pytest.raises(StorageError, match="the disk is broken"):
        ObserverLedger(tmp_path).record(Evaluated(name="", step=0, metrics={}))
    assert read_lineage(LocalStorage(tmp_path), whole=True).evaluations == {}


def test_a_checkpoint_is_recorded_after_its_directory_and_the_event_files_are_on_the_disk(tmp_path, at_publish):
    journal = take_over(LocalStorage(tmp_path), "one", lambda lineage: 0)
    writer, file = a_point(tmp_path, 5)
    entries = WriterLedger(journal, tmp_path, 0, DeviceState()).for_save(5)
    shelf = JournalShelf(tmp_path / "checkpoints", journal)
    work = shelf.begin(5)
    work.mkdir()
    (work / "manifest.json").write_text("{}")
    shelf.publish(work, 5, entries, ())
    assert {file, (tmp_path / "checkpoints").stat().st_ino} <= at_publish[-1]
    writer.close()


def test_a_save_begins_once_what_is_deleted_has_freed_its_space(tmp_path, monkeypatch):
    shelf = JournalShelf(tmp_path / "checkpoints", take_over(LocalStorage(tmp_path), "one", lambda lineage: 0))
    for step, superfluous in ((1, ()), (2, (1,))):
        work = shelf.begin(step)
        work.mkdir()
        (work / "manifest.json").write_text(str(step))
        shelf.publish(work, step, (), superfluous)
    deletes, may_end, remove_tree = threading.Event(), threading.Event(), journal_shelf.remove_tree

    def slow_removal(path):
        deletes.set()
        may_end.wait()
        remove_tree(path)

    monkeypatch.setattr(journal_shelf, "remove_tree", slow_removal)
    assert shelf.remove([1]) == [1]
    assert deletes.wait(10)
    next_save = threading.Thread(target=shelf.begin, args=(3,))
    next_save.start()
    next_save.join(0.1)
    waits = next_save.is_alive()
    may_end.set()
    next_save.join(10)
    assert waits
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["2"]


def test_a_store_that_is_closed_has_deleted_what_no_rule_keeps(tmp_path, monkeypatch):
    journal = take_over(LocalStorage(tmp_path), "one", lambda lineage: 0)
    remove_tree = journal_shelf.remove_tree
    monkeypatch.setattr(journal_shelf, "remove_tree", lambda path: (time.sleep(0.1), remove_tree(path)))
    shelf = JournalShelf(tmp_path / "checkpoints", journal)
    with CheckpointStore(tmp_path, keep_max=1, shelf=shelf) as store:
        for step in (1, 2):
            clock = np.array([step, 0, 0, 0], np.uint32)
            store.save(step, CheckpointItems(clock=clock, variables={"x": np.ones(3, np.float32)}))
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["2"]


@pytest.mark.parametrize("saves", [2, 3])
def test_a_deletion_that_fails_is_named_and_left_to_the_next_run(tmp_path, monkeypatch, caplog, saves):
    def refused(path):
        raise PermissionError(errno.EACCES, "no", str(path))

    shelf = JournalShelf(tmp_path / "checkpoints", take_over(LocalStorage(tmp_path), "one", lambda lineage: 0))
    with monkeypatch.context() as patched:
        patched.setattr(journal_shelf, "remove_tree", refused)
        for step in range(1, saves + 1):
            work, superfluous = shelf.begin(step), [step - 1][: step - 1]
            work.mkdir()
            (work / "manifest.json").write_text(str(step))
            shelf.publish(work, step, (), superfluous)
            shelf.remove(superfluous)
        shelf.settle()
    assert "could not be deleted" in caplog.text
    later = JournalShelf(tmp_path / "checkpoints", take_over(LocalStorage(tmp_path), "two", lambda lineage: saves))
    later.clean_up()
    later.settle()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [str(saves)]


def test_a_run_that_takes_over_reads_what_is_new_to_it_and_nothing_else(tmp_path, monkeypatch):
    storage = LocalStorage(tmp_path)
    for number in range(5):
        take_over(storage, f"run {number}", lambda lineage: 0)
    known = read_lineage(storage)
    take_over(storage, "a faster one", lambda lineage: 0)
    asked = []
    original = LocalStorage.get
    monkeypatch.setattr(LocalStorage, "get", lambda self, key: asked.append(key[-10:]) or original(self, key))
    journal = take_over(storage, "one", lambda lineage: 0, known=known)
    assert asked == ["identity", "0000000004", "0000000005", "0000000006"]
    assert [took.writer for took in journal.lineage.starts][-2:] == ["a faster one", "one"]
    assert len(known.starts) == 5  # what was read before belongs to its reader and is unchanged


def test_a_known_journal_that_is_gone_is_not_gone_on_with(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    known = take_over(LocalStorage(tmp_path / "a"), "one", lambda lineage: 0).lineage
    journal = take_over(LocalStorage(tmp_path / "b"), "two", lambda lineage: 0, known=known)
    assert [took.writer for took in journal.lineage.starts] == ["two"]
