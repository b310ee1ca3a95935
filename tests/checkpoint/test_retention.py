"""Tests of which checkpoints are kept."""

import logging
import math
import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core._checkpoint import CheckpointStore, read
from estimator_core._checkpoint.catalog import all_checkpoints
from estimator_core._checkpoint.read import read_checkpoint
from estimator_core._checkpoint.retention import Retention
from estimator_core.config import KeepBest
from estimator_core.errors import ArgumentError, ArgumentTypeError


def steps(model_dir):
    return [int(Path(path).name) for path in all_checkpoints(model_dir)]


def save(model_dir, items, *numbers, **rules):
    with CheckpointStore(model_dir, **rules) as store:
        for number in numbers:
            store.save(number, items(number))


@pytest.mark.parametrize(("keep_max", "kept"), [(None, [1, 2, 3, 4]), (0, [1, 2, 3, 4]), (1, [4]), (3, [2, 3, 4])])
def test_the_newest_stay(tmp_path, small_items, keep_max, kept):
    save(tmp_path, small_items, 1, 2, 3, 4, keep_max=keep_max)
    assert steps(tmp_path) == kept


def test_a_lower_limit_shrinks_the_backlog_of_an_earlier_run(tmp_path, small_items, caplog):
    save(tmp_path, small_items, 1, 2, 3, 4, keep_max=None)
    with caplog.at_level(logging.DEBUG, "estimator_core.checkpoint"):
        save(tmp_path, small_items, 5, keep_max=2)
    assert steps(tmp_path) == [4, 5]
    assert [step for step in "1234" if f"Deleted checkpoint {tmp_path / 'checkpoints' / step}:" in caplog.text] == list(
        "123"
    )
    assert {record.levelname for record in caplog.records if "Deleted" in record.message} == {"DEBUG"}  # too many lines


def test_one_an_hour_stays_over_restarts(tmp_path, small_items, monkeypatch):
    clock = iter([0, 600, 3700, 4000, 7300, 7500, 7600])  # seconds of each save
    monkeypatch.setattr("estimator_core._checkpoint.store.time", SimpleNamespace(time=lambda: 1e9 + next(clock)))
    save(tmp_path, small_items, 1, 2, 3, keep_max=1, keep_every_n_hours=1)
    assert steps(tmp_path) == [3]
    save(tmp_path, small_items, 4, 5, 6, 7, keep_max=1, keep_every_n_hours=1)
    assert steps(tmp_path) == [3, 5, 7]


@pytest.mark.parametrize(("mode", "kept"), [("min", [3, 6, 8]), ("max", [2, 6, 8])])
def test_the_best_stay(tmp_path, small_items, mode, kept):
    # NaN comes first: a sort would leave it there, and it would be kept.
    losses = {1: math.nan, 2: 0.9, 3: 0.1, 4: math.nan, 6: 0.4}
    results = {5: {"other": 0.0}, **{step: {"loss": loss} for step, loss in losses.items()}}
    best = KeepBest(metric="loss", mode=mode, n=2)
    save(tmp_path, small_items, *range(1, 9), keep_max=1, keep_best=best, results=lambda: results)
    assert steps(tmp_path) == kept


def test_what_was_just_written_stays_behind_newer_ones(tmp_path, small_items):
    """A run that continues from an older checkpoint saves steps below the newest existing one."""
    save(tmp_path, small_items, 5, keep_max=1)
    save(tmp_path, small_items, 3, keep_max=1)
    assert steps(tmp_path) == [3, 5]


def test_what_is_being_read_stays_until_later(tmp_path, small_items, caplog):
    with CheckpointStore(tmp_path, keep_max=1) as store:
        first = Path(store.save(1, small_items(1)).path)
        with read.reading(first), caplog.at_level(logging.INFO, "estimator_core.checkpoint"):
            store.save(2, small_items(2)).wait()
            assert steps(tmp_path) == [1, 2]
            assert f"{first} is being read" in caplog.text
        store.save(3, small_items(3)).wait()
        assert steps(tmp_path) == [3]


def test_readers_never_meet_a_deletion_half_way(tmp_path, small_items, assert_same):
    stop, failures = threading.Event(), []

    def read():
        while not stop.is_set():
            for path in all_checkpoints(tmp_path)[:1]:  # the next to be deleted
                try:
                    assert_same(read_checkpoint(path), small_items(int(Path(path).name)))
                except Exception as error:
                    failures.append(error)

    with CheckpointStore(tmp_path, keep_max=1) as store:
        store.save(0, small_items(0)).wait()
        reader = threading.Thread(target=read)
        reader.start()
        for step in range(1, 15):
            store.save(step, small_items(step))
        stop.set()
        reader.join()
    assert not [
        failure
        for failure in failures
        if not re.search("here is no checkpoint in|deleted|is not a checkpoint", str(failure))
    ]


def test_a_checkpoint_that_cannot_be_deleted_is_tried_again(tmp_path, small_items, monkeypatch, caplog):
    with CheckpointStore(tmp_path, keep_max=1) as store:
        store.save(1, small_items(1)).wait()
        with monkeypatch.context() as patch:
            patch.setattr("estimator_core._checkpoint.read.rename_unless_read", _refuse)
            store.save(2, small_items(2)).wait()
        assert steps(tmp_path) == [1, 2]
        assert "could not be deleted (not now); the next save tries again" in caplog.text
        store.save(3, small_items(3)).wait()
    assert steps(tmp_path) == [3]


def _refuse(path, target):
    raise OSError("not now")


@given(
    times=st.lists(st.floats(-5, 100), max_size=12),
    keep_max=st.integers(1, 5),
    every=st.none() | st.floats(0.5, 30),
    best=st.none() | st.integers(1, 4),
)
def test_rules_only_add(times, keep_max, every, best):
    hours = dict(enumerate(times))
    results = {step: {"loss": float(step % 5)} for step in hours}
    rule = None if best is None else KeepBest(metric="loss", mode="max", n=best)
    rules = {"keep_max": keep_max, "keep_every_n_hours": every, "keep_best": rule, "results": lambda: results}
    gone = set(Retention(**rules).superfluous(hours))
    assert gone <= set(Retention(keep_max=keep_max).superfluous(hours))
    assert gone.isdisjoint(sorted(hours)[-keep_max:])
    rest = {step: hour for step, hour in hours.items() if step not in gone}
    again = Retention(**rules).superfluous(rest)
    assert again == []  # a checkpoint that was kept is not deleted without a new save


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Retention(keep_max=-1), "`keep_max` must not be negative, got -1"),
        (lambda: Retention(keep_every_n_hours=0), "`keep_every_n_hours` must be positive, got 0"),
        (lambda: Retention(keep_every_n_hours=math.nan), "`keep_every_n_hours` must be positive"),
        (lambda: KeepBest(metric="m", mode="best", n=1), '`mode` must be "min" or "max", not \'best\''),
        (lambda: KeepBest(metric="m", mode="max", n=0), "KeepBest: n must be at least 1, given: 0."),
        (lambda: KeepBest(metric="m", mode="max", n=2.5), "KeepBest: n must be an integer, given: 2.5."),
        (lambda: KeepBest(metric="m", mode="max", n="3"), "KeepBest: n must be an integer, given: '3'."),
    ],
)
def test_rules_that_make_no_sense_are_refused(make, words):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=words):
        make()


@pytest.mark.parametrize(
    ("results", "evaluation", "told"),
    [
        ({1: {"loss": 1.0, "auc": 0.5}}, None, "the evaluation without a name has no 'acuracy'. It has auc, loss."),
        ({}, "held_out", "the evaluation 'held_out' has no 'acuracy'. It has no results so far; KeepBest("),
    ],
    ids=["another name", "another evaluation"],
)
def test_a_best_that_nobody_measures_is_told_once_when_a_checkpoint_goes(
    results: Any, evaluation: str | None, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    rule = KeepBest(metric="acuracy", mode="max", evaluation=evaluation)
    retention = Retention(keep_max=1, keep_best=rule, results=lambda: results)
    assert retention.superfluous({1: 0.0}) == []
    assert not caplog.messages
    for _ in range(2):
        assert retention.superfluous({1: 0.0, 2: 0.1}) == [1]
    (message,) = caplog.messages
    assert told in message


def test_a_best_that_nobody_measures_is_told_of_each_run(tmp_path, small_items, caplog):
    """The warning is logged for each run, because a sweep trains several runs in one process."""
    for name in ("first", "second"):
        rule = KeepBest(metric="acuracy", mode="max")
        save(tmp_path / name, small_items, 1, 2, 3, keep_max=1, keep_best=rule, results=lambda: {1: {"loss": 1.0}})
    told = [message for message in caplog.messages if "none is kept as the best" in message]
    assert [one.split(" are ")[0] for one in told] == [
        f"Checkpoints of {tmp_path / name}" for name in ("first", "second")
    ]
