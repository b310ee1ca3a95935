"""Tests of the lock: one run per model_dir, regardless of how the previous run ended."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from estimator_core._checkpoint import lock as lock_room
from estimator_core._checkpoint.lock import LOCK_FILE, Holder, ModelDirLock
from estimator_core._files import process_start
from estimator_core.errors import ModelDirLockedError

_HOLDER = """
import sys, time
from estimator_core._checkpoint.lock import ModelDirLock
with ModelDirLock(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(600)
"""


def write_lock(model_dir, **changes):
    """Writes a lock file as another process would have left it."""
    holder = replace(Holder.this_process(datetime.now(UTC)), **changes)
    (model_dir / LOCK_FILE).write_text(json.dumps({"token": "another", **holder.to_json()}))
    return model_dir / LOCK_FILE


def test_a_second_run_is_refused_by_name_and_a_killed_one_is_not_missed(tmp_path, caplog):
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(ModelDirLockedError) as caught:
            ModelDirLock(tmp_path).acquire()
        text = str(caught.value)
        assert f"training in {tmp_path}: process {holder.pid} on {lock_room.platform.node()}, started 20" in text
        assert f"delete {tmp_path / LOCK_FILE}" in text
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    assert (tmp_path / LOCK_FILE).exists()
    with ModelDirLock(tmp_path) as third:
        assert third.held()
    assert f"process {holder.pid} on" in caplog.text
    assert "is gone" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_taken_again_after_an_error(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), ModelDirLock(tmp_path / "new" / "run"):
            raise ZeroDivisionError
    assert list((tmp_path / "new" / "run").iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "model-dir-lock"]


def test_the_same_process_cannot_train_twice(tmp_path):
    with ModelDirLock(tmp_path) as first:
        with pytest.raises(ModelDirLockedError, match=f"process {os.getpid()}"):
            ModelDirLock(tmp_path).acquire()
        assert first.held()  # the refused run removed nothing


def test_a_process_id_that_was_given_to_somebody_else(tmp_path):
    write_lock(tmp_path, process_start="1")  # this pid exists, but its process started at another time
    with ModelDirLock(tmp_path) as lock:
        assert lock.held()


def test_another_machine_is_judged_by_its_heartbeat(tmp_path):
    path = write_lock(tmp_path, host="far", machine="far away", pid=1)
    with pytest.raises(
        ModelDirLockedError, match=r"process 1 on far, .*\(its last sign of life was 0 s ago; after 120 s"
    ):
        ModelDirLock(tmp_path).acquire()
    old = time.time() - 200
    os.utime(path, (old, old))
    with pytest.raises(ModelDirLockedError, match="was 200 s ago; after 300 s it counts as gone"):
        ModelDirLock(tmp_path, stale_secs=300).acquire()
    with ModelDirLock(tmp_path) as lock:
        assert lock.held()
    assert list(tmp_path.iterdir()) == []


def test_the_heartbeat_is_renewed_and_never_for_somebody_else(tmp_path):
    with ModelDirLock(tmp_path, heartbeat_secs=0.01) as lock:
        path = tmp_path / LOCK_FILE
        os.utime(path, (1, 1))
        assert _becomes(lambda: path.stat().st_mtime > 1)
        write_lock(tmp_path)
        os.utime(path, (1, 1))
        assert not lock.held()
        assert not _becomes(lambda: path.stat().st_mtime > 1, within=0.1)
    assert path.exists()  # released, but the file belongs to another run and stays


def _becomes(condition, within=10.0):
    deadline = time.monotonic() + within
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"token": "x"}', "\x00"])
def test_a_damaged_lock_file_is_replaced(tmp_path, text, caplog):
    (tmp_path / LOCK_FILE).write_text(text)
    with ModelDirLock(tmp_path) as lock:
        assert lock.held()
    assert "damaged; it is replaced" in caplog.text


def test_a_directory_deleted_under_way_is_survived(tmp_path):
    with ModelDirLock(tmp_path / "run", heartbeat_secs=0.01) as lock:
        (tmp_path / "run" / LOCK_FILE).unlink()
        (tmp_path / "run").rmdir()
        time.sleep(0.05)
        assert not lock.held()


def _race(model_dir, barrier, results):
    lock = ModelDirLock(model_dir)
    barrier.wait()
    try:
        lock.acquire()
        results.put("won")
    except ModelDirLockedError:
        results.put("lost")
    barrier.wait()
    lock.release()


@pytest.mark.parametrize("stale", [False, True], ids=["free", "stale"])
def test_of_several_at_once_one_wins(tmp_path, stale):
    if stale:
        write_lock(tmp_path, process_start="1")
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    racers = [context.Process(target=_race, args=(str(tmp_path), barrier, results)) for _ in range(3)]
    for racer in racers:
        racer.start()
    outcomes = sorted(results.get(timeout=60) for _ in racers)
    for racer in racers:
        racer.join()
    assert outcomes == ["lost", "lost", "won"]


_FORKING = """
import os, sys
from estimator_core._checkpoint.lock import ModelDirLock
with ModelDirLock(sys.argv[1]) as lock:
    child = os.fork()
    if child == 0:
        lock.release()
        os._exit(0)
    os.waitpid(child, 0)
    print(lock.held(), flush=True)
"""


def test_a_holder_that_the_system_hides_may_live(tmp_path, monkeypatch):
    """The heartbeat decides. /proc with hidepid hides the processes of other users in this way."""

    def kill(pid, number):
        raise PermissionError(pid, number)

    monkeypatch.setattr(os, "kill", kill)
    write_lock(tmp_path, pid=4194999)  # larger than any id that Linux assigns
    with pytest.raises(ModelDirLockedError, match="its last sign of life was 0 s ago"):
        ModelDirLock(tmp_path).acquire()
    with ModelDirLock(tmp_path, stale_secs=-1):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_worker_does_not_give_the_lock_back(tmp_path):
    done = subprocess.run([sys.executable, "-c", _FORKING, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs waitid")
def test_a_zombie_holds_no_lock(tmp_path):
    dying = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        began = process_start(dying.pid)
        write_lock(tmp_path, pid=dying.pid, process_start=began)
        with pytest.raises(ModelDirLockedError, match=f"process {dying.pid}"):
            ModelDirLock(tmp_path).acquire()
        dying.kill()
        os.waitid(os.P_PID, dying.pid, os.WEXITED | os.WNOWAIT)  # it has ended, but no process has reaped it
        with ModelDirLock(tmp_path) as lock:
            assert lock.held()
    finally:
        dying.kill()
        dying.communicate()
