"""Tests of the store: values of this run count, those of strangers are reported and ignored, and it does not grow."""

import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from estimator_cluster import coordinator
from estimator_cluster.identity import identity_of
from estimator_cluster.liveness import Watch
from estimator_cluster.store import SealedStore
from estimator_core.coordinator import Lost
from estimator_core.errors import ProcessLostError
from plugins.cluster.tests.fake_store import FakeStore, coordinators


@pytest.fixture
def two():
    store = FakeStore()
    made = coordinators(store, 2)
    yield store, made
    for one in reversed(made):
        one.close()


def together(made, call):
    with ThreadPoolExecutor(len(made)) as pool:
        return list(pool.map(call, made))


def test_a_value_of_a_stranger_is_ignored_and_named(caplog):
    store = FakeStore()
    ours, strangers = SealedStore(store, b"ours"), SealedStore(store, b"theirs")
    strangers.put("est/r/0/topics/stop/0/1", '"stop now"')
    store.put("est/r/0/topics/stop/0/1/guess", "no seal at all")
    with caplog.at_level(logging.WARNING):
        assert ours.first("est/r/0/topics/stop/0/1") is None
        ours.put("est/r/0/topics/stop/0/1", "null")
        assert ours.values("est/r/0/topics/stop/0/1") == ["null"]
    named = [record.getMessage() for record in caplog.records]
    assert len(named) == 2, "each once"
    assert all("does not carry the seal of this run" in line for line in named)


def test_a_value_counts_at_its_own_key_alone():
    store = FakeStore()
    ours = SealedStore(store, b"ours")
    ours.put("est/r/0/topics/seed/0/0", "7")
    (value,) = store.values.values()
    store.put("est/r/0/topics/seed/1/0/copied", value)
    store.put("est/r/1/topics/seed/0/0/copied", value)
    assert ours.first("est/r/0/topics/seed/1/0") is None
    assert ours.first("est/r/1/topics/seed/0/0") is None
    assert ours.first("est/r/0/topics/seed/0/0") == "7"


def test_without_a_secret_everything_counts():
    store = FakeStore()
    SealedStore(store, None).put("est/a", "1")
    assert SealedStore(store, None).first("est/a") == "1"
    assert SealedStore(store, b"ours").first("est/a") is None


def test_a_forged_answer_does_not_take_the_place_of_the_true_one(two):
    store, made = two
    store.put("est/r/0/topics/stop/0/all/forged", json.dumps(["stop", "stop"]))
    store.put("est/r/0/topics/stop/0/1/forged", '"stop"')
    assert together(made, lambda one: one.agree("stop", str(one.index), 10.0)) == [["0", "1"]] * 2


def test_the_store_does_not_grow(two):
    store, made = two
    together(made, lambda one: [one.agree("again", "x", 10.0) for _ in range(50)])
    kept = [key for key in store.values if "/topics/again/" in key]
    assert len(kept) == 2, "of the newest serial: the value of process 1, and the answer"


def test_who_ends_while_others_wait_is_named():
    store = FakeStore()
    first, second = coordinators(store, 2)
    second.close()
    with pytest.raises(ProcessLostError, match=r"Process 1 of 2 \(host-1, pid 1\) is lost: it has ended, .* at 'save'"):
        first.barrier("save", 30.0)
    assert first.lost().index == 1
    first.close()


class Silent(FakeStore):
    """A store that does not answer, as in a frozen process 0."""

    def __init__(self, answers: int):
        super().__init__()
        self.answers, self.released = answers, threading.Event()

    def listed(self, directory):
        self.answers -= 1
        if self.answers < 0:
            self.released.wait(60)
        return super().listed(directory)


def watched(store, index, heartbeat_secs):
    noticed: list[Lost] = []
    who = ["host-0, pid 0", "host-1, pid 1"]
    sealed = SealedStore(store, None)
    watch = Watch(sealed, "est/r/0", index, who, heartbeat_secs=heartbeat_secs, stays=False, on_lost=noticed.append)
    return watch, noticed


def test_a_frozen_process_0_is_named_before_jax_aborts_this_one():
    """The watch looks once per second, and the first two requests are answered. Process 0 does not wait for itself."""
    store = Silent(2)
    (watch, noticed), (chief, nothing) = watched(store, 1, 5), watched(Silent(0), 0, 5)
    began = time.monotonic()
    assert watch.changed.wait(30)
    assert 4.0 < time.monotonic() - began < 30
    assert noticed[0].describe(2).startswith("Process 0 of 2 (host-0, pid 0) is lost: its coordination service has not")
    assert nothing == []
    for one in (watch, chief):
        one.end()
    store.released.set()


def test_a_service_that_answers_is_not_named():
    watch, noticed = watched(FakeStore(), 1, 3)
    assert not watch.changed.wait(4)
    assert noticed == []
    watch.end()


def test_who_ends_a_series_before_another_is_named_to_it(two):
    """A process that is no further, or in another series, is not affected."""
    store, made = two
    for _ in range(2):
        ends = [one.follow(lambda: 4) for one in made]
        ends[1]()
        assert not made[0]._watch.changed.wait(2.5)
        ends[0]()
    ends[0]()  # again, as a generator that is collected late
    assert len([key for key in store.values if key.startswith("est/r/0/stopped/1/")]) == 1
    made[0].follow(lambda: 5)
    ends[0]()  # not the series of now
    made[1].follow(lambda: 4)()
    assert made[0]._watch.changed.wait(10)
    lost = made[0].lost()
    assert lost.describe(2).startswith("Process 1 of 2 (host-1, pid 1) is lost: it has stopped taking predictions, and")


def test_who_ends_a_series_earlier_is_named_to_who_has_ended_it_too(two):
    """Both went on with different batches."""
    _, made = two
    drawn = [5, 4]
    for index, one in enumerate(made):
        one.follow(lambda index=index: drawn[index])()
    drawn[:] = [9, 9]  # of something else
    assert made[0]._watch.changed.wait(10)
    assert "Process 1 of 2" in made[0].lost().describe(2)


def test_who_waits_for_a_process_that_has_left_learns_that_it_stopped_earlier(two):
    """The error named only an operation inside the package."""
    _, made = two
    for one, drawn in zip(made, (5, 4), strict=True):
        one.follow(lambda drawn=drawn: drawn)
    made[1].close()
    with pytest.raises(ProcessLostError, match=r"Process 1 of 2 .* it has stopped taking predictions, and process 0"):
        made[0].barrier("closed connection", 10)


def test_a_lost_connection_ends_with_a_status_that_restarts(two):
    """An error of the program is told too, but is not a loss of the process that raises it."""
    _, made = two
    made[0].fail(ProcessLostError("The connection of this process to another one broke.", 0))
    assert made[0].lost().index == 0
    assert made[1]._watch.changed.wait(10)
    assert "it failed: ProcessLostError: The connection of this process" in made[1].lost().reason


def test_all_late_processes_are_named():
    store = FakeStore(4)
    made = coordinators(store, 4)
    SealedStore(store, b"of the run").put("est/r/0/topics/save/0/2", "")
    with pytest.raises(ProcessLostError, match=r"Process 1 of 4 .* arrived at 'save' within 0.5 s, nor have .*\[3\]"):
        made[0].barrier("save", 0.5)
    for one in reversed(made):
        one.close()


def test_process_0_is_not_late_while_it_waits_for_another():
    store = FakeStore(3)
    made = coordinators(store, 3)
    with pytest.raises(ProcessLostError, match=r"Process 2 of 3 .* it has not arrived at 'save' within 0.5 s\."):
        made[1].barrier("save", 0.5)
    for one in reversed(made):
        one.close()


@pytest.mark.parametrize(("index", "late"), [(0, [1]), (1, [0])])
def test_the_log_says_once_for_whom_a_process_waits(two, caplog, monkeypatch, index, late):
    monkeypatch.setattr(coordinator, "_SAY_SECS", 0.1)
    _, made = two
    for _ in range(2):
        with caplog.at_level(logging.WARNING), ThreadPoolExecutor(1) as pool:
            waits = pool.submit(made[index].agree, "call", "x", 30.0)
            time.sleep(0.5)
            made[1 - index].agree("call", "y", 30.0)
            waits.result()
    messages = [record.getMessage() for record in caplog.records]
    (said,) = [message for message in messages if message.startswith(f"Process {index} has waited")]
    assert f"at 'call' for processes {late}, and waits as long as they are alive" in said


@pytest.mark.parametrize("count", [2, 16, 64])
def test_requests_of_an_agreement_grow_with_the_processes_alone(count):
    """Existing values are read once, and no request of another process is answered with all values."""
    store = FakeStore(count)
    made = coordinators(store, count)
    sealed = SealedStore(store, b"of the run")
    for index in range(1, count):
        sealed.put(f"est/r/0/topics/save/0/{index}", "x" * 100)
    before = store.requests
    made[0].agree("save", "x" * 100, 10.0)
    assert store.requests - before <= count + 3  # the threads of the watches may look, too
    for one in reversed(made):
        one.close()


def test_the_environment_says_which_run_it_is():
    assert identity_of({}).base == "est/run/0"
    assert identity_of({"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "2"}).base == "est/7/2"
    assert identity_of({"ESTIMATOR_RUN_ID": "a", "ESTIMATOR_ATTEMPT": "3", "SLURM_JOB_ID": "7"}).base == "est/a/3"
    secret = identity_of({"ESTIMATOR_RUN_SECRET": "hush"})
    assert secret.secret == b"hush"
    assert "hush" not in repr(secret)
