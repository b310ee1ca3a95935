"""Tests of a followed job whose engine does not answer for a while."""

import os
import threading

import pytest

from estimator_launchers import JobSpec, JobStatus, launching
from estimator_launchers.errors import LaunchError
from estimator_launchers.following import Kept
from estimator_launchers.kubectl import PodLog


class Engine:
    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self, job_id):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


AWAY = LaunchError("the connection was refused")


def test_the_last_answer_counts_while_the_engine_does_not_answer():
    kept = Kept(Engine("running", AWAY, AWAY, "ended"), secs=-1.0, patience_secs=60.0)
    assert [kept.of("job") for _ in range(4)] == ["running", "running", "running", "ended"]


def test_it_does_not_count_for_ever_and_not_for_a_job_that_was_never_known():
    impatient = Kept(Engine("running", AWAY), secs=-1.0, patience_secs=-1.0)
    assert impatient.of("job") == "running"
    with pytest.raises(LaunchError, match="refused"):
        impatient.of("job")
    with pytest.raises(LaunchError, match="refused"):
        Kept(Engine(AWAY), secs=-1.0, patience_secs=60.0).of("job")


def test_half_a_line_comes_again_whole_and_nothing_else_twice(tmp_path, monkeypatch):
    at = "2026-01-01T00:00:00"
    texts = [f"{at}.1Z one\n{at}.2Z tw", f"{at}.1Z one\n{at}.2Z two\n{at}.3Z   three  \n{at}.4Z last"]
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\ncat {tmp_path}/now\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    log, seen = PodLog("pod"), []
    for number, over in ((0, False), (1, False), (1, True)):
        (tmp_path / "now").write_text(texts[number])
        seen.append(list(log.new(over=over)))
    assert seen == [["one"], ["two", "  three  "], ["last"]]


def test_a_job_is_asked_to_end_until_the_engine_has_taken_it(monkeypatch, capsys):
    monkeypatch.setattr(launching, "_STOP_AGAIN_SECS", 0.01)

    class Launcher:
        refused = 2
        phase = "running"

        def status(self, job_id):
            return JobStatus(phase=self.phase)

        def stop(self, job_id, grace_secs):
            if self.refused:
                self.refused -= 1
                raise AWAY
            self.phase = "resumable"

        def logs(self, job_id, process):
            yield "a line"
            raise AWAY

    asked, lines = threading.Event(), []
    asked.set()
    job = JobSpec(command=("true",), processes=1)
    status = launching._follow(Launcher(), "job", job, asked, launching._Show(lines.append))
    assert status.phase == "resumable"
    assert lines == ["[0] a line"]
    assert capsys.readouterr().err.count("the job could not be asked to end yet: the connection was refused") == 2
