"""Tests of the lines of `estimator launch --on slurm` about a job, from the notes of its processes, without Slurm."""

import contextlib
import os
import time
from pathlib import Path

import pytest

from estimator_launchers import JobSpec, SlurmLauncher
from estimator_launchers.errors import LaunchError
from estimator_launchers.slurm_notes import told


def note(folder: Path, **notes: dict[str, str]) -> None:
    for kind, texts in notes.items():
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / kind / name).write_text(text)


def lines(folder: Path) -> list[str]:
    return [line for _, line in told(folder)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a job of three processes on two nodes, one of which was killed."""
    note(
        tmp_path,
        began={"0": "1000000000 3\n"},
        placed={"0.0": "n1\n", "0.1": "n2\n", "0.2": "n2\n"},
        ended={"0.1": "5000000000 1 137\n", "0.0": "9000000000 0 75\n", "0.2": "9500000000 2 134\n"},
    )
    return tmp_path


def test_who_was_killed_is_named_with_its_node_and_not_those_that_follow(folder: Path) -> None:
    assert lines(folder) == ["process 1 on n2 has ended: ended by SIGKILL"]


def test_the_next_attempt_says_how_long_after_the_loss_it_begins(folder: Path) -> None:
    note(folder, began={"1": "17500000000 3\n"})
    assert lines(folder)[-1] == "starting again, 3 together (attempt 2), 12.5 s after the loss"


def test_a_process_without_a_word_was_lost_with_its_node(folder: Path) -> None:
    (folder / "ended" / "0.1").unlink()
    assert lines(folder) == ["process 0 on n1 has ended: stopped early, can continue"]
    note(folder, began={"1": "17500000000 3\n"})
    assert "process 1 on n2 is lost: it has left no record of its end" in lines(folder)


def test_an_evaluator_is_called_so_and_is_no_loss_of_the_trainers(folder: Path) -> None:
    note(folder, ended={"0.3": "2000000000 3 1\n"}, began={"1": "17500000000 3\n"})
    assert lines(folder)[0] == "the evaluator has ended: failed with status 1"
    assert lines(folder)[-1].endswith("12.5 s after the loss")


def test_half_a_note_is_none(folder: Path) -> None:
    note(folder, ended={"0.1": "50000"}, began={"1": ""})
    assert lines(folder) == ["process 0 on n1 has ended: stopped early, can continue"]


def test_each_line_is_told_once_and_the_controller_is_asked_seldom(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the threads that follow a job checks the notes ten times a second."""
    site = tmp_path_factory.mktemp("site")
    squeue = site / "squeue"
    squeue.write_text(f"#!/bin/sh\necho asked >>{site}/asked\ncat {site}/state\n")
    squeue.chmod(0o755)
    (site / "state").write_text("RUNNING\n")
    monkeypatch.setenv("PATH", f"{site}{os.pathsep}{os.environ['PATH']}")
    (folder / "7").mkdir()
    for kind in ("began", "placed", "ended"):
        (folder / kind).rename(folder / "7" / kind)
    launcher = SlurmLauncher(str(folder))
    events = launcher.events("7")
    assert next(events) == "estimator launch: process 1 on n2 has ended: ended by SIGKILL"
    began = time.monotonic()
    while time.monotonic() - began < 1.0:
        assert launcher.status("7").phase == "running"
    assert (site / "asked").read_text().splitlines() == ["asked"]
    (site / "state").write_text("COMPLETED\n")
    assert list(events) == []


@pytest.mark.parametrize(
    ("says", "noticed"),
    [
        ("slurm_kill_job2() failed Unable to contact slurm controller (connect failure)", True),
        ("Socket timed out on send/recv operation", True),
        ("Kill job error on job id 7: Invalid job id specified", False),
    ],
)
def test_a_controller_that_does_not_take_the_end_is_noticed(
    says: str, noticed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"squeue": "echo COMPLETED", "scancel": f"echo 'scancel: error: {says}' >&2; exit 1"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "7").mkdir()
    expected = pytest.raises(LaunchError, match="scancel gets no answer") if noticed else contextlib.nullcontext()
    with expected:
        SlurmLauncher(str(tmp_path)).stop("7", 0.1)


def test_a_job_of_which_nothing_is_known_is_not_called_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller does not answer, so a job that was submitted or that has a folder may run."""
    silent = "echo 'squeue: error: no controller' >&2; exit 1"
    for name, text in {"squeue": silent, "scancel": "exit 0", "sbatch": "echo 8"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    launcher = SlurmLauncher(str(tmp_path / "jobs"))
    for ask in (launcher.status, lambda job: next(launcher.logs(job, 0)), lambda job: launcher.stop(job, 0.1)):
        with pytest.raises(LaunchError, match="squeue gets no answer about a job '7': squeue: error: no controller"):
            ask("7")
    (tmp_path / "jobs" / "7").mkdir(parents=True)
    assert launcher.status("7").phase == "running"
    assert launcher.submit(launcher.plan(JobSpec(command=("x",)))) == "8"
    assert launcher.status("8").phase == "running"
