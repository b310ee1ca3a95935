"""Tests of evaluations after the end of their run: files of a killed evaluation are removed, and files of a running one
stay.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from estimator_core._checkpoint.audit import audit, repair
from estimator_core._summaries import event_file
from tests.journal.small_run import batches, estimator_of, train
from tests.journal.test_runs import killed, points, started, what_is_left

STEPS = 10


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended and was started once more. Tests copy it."""
    directory = tmp_path_factory.mktemp("ended") / "run"
    train(str(directory), STEPS)
    train(str(directory), STEPS)
    return directory


@pytest.fixture
def run(tmp_path: Path, ended: Path) -> Path:
    shutil.copytree(ended, tmp_path / "run")
    return tmp_path / "run"


def stopped_before_its_record(run: Path) -> subprocess.Popen[str]:
    """Starts the ended run again and freezes it when its result is in an event file but not in the journal."""
    process = started(run, "record", 1, "SIGSTOP", steps=STEPS)
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    return process


def go_on(process: subprocess.Popen[str]) -> str:
    os.kill(process.pid, signal.SIGCONT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return errors


MOMENTS = [
    [("record", 1), ("record", 1)],
    pytest.param([("record", 2), ("line", 1)], marks=pytest.mark.slow),
]


@pytest.mark.parametrize("moments", MOMENTS, ids=str)
def test_evaluations_killed_after_the_end_leave_nothing(run: Path, moments: Any) -> None:
    undisturbed = what_is_left(run)
    for where, number in moments:
        killed(run, where, number, steps=STEPS)
    train(str(run), STEPS)
    assert what_is_left(run) == undisturbed
    assert audit(run).findings == ()


def test_a_living_evaluation_beside_the_next_one_is_not_harmed(run: Path) -> None:
    """An evaluation, an audit, a repair and a run that takes the next epoch do not harm it."""
    before = points(run / "eval")["loss"]
    living = stopped_before_its_record(run)
    (written,) = (path for path in (run / "eval").glob("events*") if event_file_is_locked(path))
    kept = written.read_bytes()
    estimator_of(str(run)).evaluate(batches(1))
    assert audit(run).findings == ()
    repair(run)
    train(str(run), STEPS + 5)
    assert written.read_bytes() == kept
    assert "was removed or replaced" not in go_on(living)
    assert audit(run).findings == ()
    assert written.read_bytes() == kept
    assert set(points(run / "eval")["loss"]) == {*before, STEPS + 5}


@pytest.mark.slow
def test_an_evaluation_killed_beside_a_living_one_leaves_nothing(run: Path) -> None:
    living = stopped_before_its_record(run)
    killed(run, "record", 1, steps=STEPS)
    train(str(run), STEPS)
    assert audit(run).findings == ()
    go_on(living)
    assert audit(run).findings == ()


def test_without_locks_only_a_run_that_takes_over_removes(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without locks, nothing shows whether the writer has ended."""
    killed(run, "record", 1, steps=STEPS)
    monkeypatch.setattr(event_file, "_lock", _refused)
    estimator_of(str(run)).evaluate(batches(1))
    assert [finding.kind for finding in audit(run).findings] == ["event file"]
    train(str(run), STEPS + 5)
    assert audit(run).findings == ()


def _refused(file: Any) -> None:
    raise OSError("no locks here")


def event_file_is_locked(path: Path) -> bool:
    with open(path, "r+b") as file:
        return event_file.try_lock(file) is False
