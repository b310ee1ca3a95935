"""Tests of the state of the disk after a SIGKILL at any point of a save, simulated and with real processes."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from estimator_core._checkpoint import CheckpointStore, latest_checkpoint
from estimator_core._checkpoint.newest import read_latest
from estimator_core._checkpoint.read import read_checkpoint

_MUTATIONS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree", "shutil.move", "open"}


class Snapshots:
    """Copies a directory just before each change that Python code makes in it. A copy is the state after a kill at that
    moment.

    A kill keeps everything written before it, so the page cache need not be modelled.
    """

    def __init__(self) -> None:
        self._source: Path | None = None
        self._target: Path | None = None
        self._copying = threading.local()
        self._one_at_a_time = threading.Lock()
        self.events: list[str] = []
        sys.addaudithook(self._audit)  # stays for the life of the process, and is idle outside `watching`

    @contextlib.contextmanager
    def watching(self, source, target):
        self._source, self._target, self.events = source, target, []
        try:
            yield
        finally:
            self._source = None

    def _audit(self, event, args):
        if self._source is None or event not in _MUTATIONS or getattr(self._copying, "now", False):
            return
        if event == "open" and not (isinstance(args[1], str) and set(args[1]) & set("wax+")):
            return
        if not str(args[0]).startswith(str(self._source)):
            return
        self._copying.now = True
        try:
            self._copy(f"{event} {Path(str(args[0])).relative_to(self._source)}")
        finally:
            self._copying.now = False

    def _copy(self, change):
        with self._one_at_a_time:
            _copy_moving_tree(self._source, self._target / str(len(self.events)) / "checkpoints")
            self.events.append(change)


def _copy_moving_tree(source, target):
    for _ in range(20):
        try:
            shutil.copytree(source, target)
            return
        except (shutil.Error, FileNotFoundError):  # the other threads of the writer continue meanwhile
            shutil.rmtree(target, ignore_errors=True)
    raise AssertionError("the tree never held still")


@pytest.fixture(scope="module")
def snapshots():
    return Snapshots()


@pytest.mark.parametrize("again", [False, True], ids=["a new step", "a step saved again"])
def test_every_state_of_the_disk_during_a_save_can_be_resumed(tmp_path, snapshots, small_items, assert_same, again):
    store = CheckpointStore(tmp_path / "run", keep_max=2)
    for step in (1, 2):
        store.save(step, small_items(step))
    store.wait()
    new = 2 if again else 3
    with snapshots.watching(tmp_path / "run" / "checkpoints", tmp_path / "states"):
        store.save(new, small_items(new))
        store.wait()
    assert len(snapshots.events) > 10
    assert any(event.startswith("os.rename .writing") for event in snapshots.events)
    seen = set()
    for number, event in enumerate(snapshots.events):
        state = tmp_path / "states" / str(number)
        before = latest_checkpoint(state)  # a reader may come before the next run
        assert_same(read_checkpoint(before), small_items(int(Path(before).name)))
        with CheckpointStore(state, keep_max=2) as resumed:
            restored = read_latest(state)
            assert restored.step >= 2, event
            assert_same(restored.items, small_items(restored.step))
            leftovers = [path.name for path in (state / "checkpoints").iterdir() if not path.name.isdigit()]
            assert leftovers == [], event
            if number % 10 == 0:
                resumed.save(9, small_items(9))
                resumed.wait()
                assert_same(read_checkpoint(state), small_items(9))
        seen.add(restored.step)
    assert seen == {2, new}


_WRITER = """
import sys
import numpy as np
from estimator_core._checkpoint import CheckpointItems, CheckpointStore
from estimator_core._checkpoint.lock import ModelDirLock
from estimator_core._checkpoint.newest import read_latest

with ModelDirLock(sys.argv[1]), CheckpointStore(sys.argv[1], keep_max=2) as store:
    found = read_latest(sys.argv[1], set_aside=True)
    step = 0 if found is None else found.step
    print("started", step, flush=True)
    while True:
        step += 1
        variables = {str(i): np.full((300, 100), step * 10 + i, np.float32) for i in range(5)}
        saved = store.save(step, CheckpointItems(clock=np.array([step, 0, 0, 0], np.uint32), variables=variables))
        if step % 2:
            saved.wait()
            print("committed", step, flush=True)
"""


def kill_and_check(model_dir, delay):
    """Starts a run that saves without pause, kills it and checks the remaining files. Returns the restored step."""
    command = [sys.executable, "-c", _WRITER, model_dir]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            started = process.stdout.readline().split()
            first = process.stdout.readline().strip()
            time.sleep(delay)
        finally:
            process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines()
    assert started[0] == "started"
    announced = max(int(line.split()[1]) for line in [first, *rest] if line.startswith("committed "))
    restored = read_latest(model_dir)
    assert restored.step >= announced
    for index, array in restored.items.variables.items():
        assert (array == restored.step * 10 + int(index)).all()
    return int(started[1]), restored.step


def test_a_killed_writer_loses_nothing_it_announced(tmp_path):
    seed = int.from_bytes(os.urandom(2))
    delays = random.Random(seed)
    reached = 0
    for _ in range(2):
        started, restored = kill_and_check(str(tmp_path), delays.uniform(0, 0.3))
        assert started >= reached, f"seed {seed}"
        reached = restored


@pytest.mark.slow
def test_a_writer_killed_often_loses_nothing_it_announced(tmp_path):
    seed = int.from_bytes(os.urandom(2))
    delays = random.Random(seed)
    reached = 0
    for _ in range(30):
        started, restored = kill_and_check(str(tmp_path), delays.uniform(0, 0.3))
        assert started >= reached, f"seed {seed}"
        reached = restored
