"""Tests of runs stopped at random moments of every phase: after a restart they end like the uninterrupted run, bit for
bit.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec

pytestmark = [pytest.mark.plugins, pytest.mark.libraries]

PHASES = (
    "start",
    "compile",
    "step",
    "evaluation",
    "arrays",
    "manifest",
    "rename",
    "retention",
    "export",
    "shutdown",
)
#: The number of moments in the long form, over both examples. SIGTERM has a quarter as many.
MOMENTS = int(os.environ.get("FAULT_MOMENTS", "200"))
RESUMABLE = 75


@pytest.fixture
def stop_and_resume(
    tmp_path: Path, runs: Any, whole: Any, left: Any, trace: Any, draw: Any
) -> Callable[[random.Random, str, int], str]:
    """Stops a run at a moment of a phase, resumes it and compares the results. Returns the phases it was in, or
    "none".
    """

    def run(moments: random.Random, phase: str, number: int) -> str:
        directory = tmp_path / "stopped"
        moment = draw(moments, whole[1], phase, number)
        status = runs.run(directory, moment, moments.choice([1, "auto"]))
        under_way = [f"{line['phase']}" for line in still_open(trace(directory))]
        log = (directory / "trace.log").read_text()
        if number == signal.SIGKILL:
            assert status == -signal.SIGKILL or (status == 0 and phase in ("export", "shutdown")), (moment, log)
        elif status == RESUMABLE:
            saved = int(log.rpartition("saved at step ")[2].split(";")[0])
            assert ec.latest_checkpoint(str(directory / "run")).endswith(f"/{saved}"), (moment, log)
        else:  # outside training SIGTERM ends the process, or the run ended before
            assert status in (0, -signal.SIGTERM), (moment, log)
        assert runs.run(directory) == 0, (moment, (directory / "trace.log").read_text())
        # The state of the cadence of hooks depends on steps_per_dispatch.
        assert replace(left(directory), memory=None) == replace(whole[0], memory=None), moment
        where = "+".join(under_way) or "none"
        shutil.rmtree(directory)  # two hundred directories would fill the disk
        print(f"{phase} {moment['occurrence']} {moment['at']}: status {status}, in {where}", flush=True)
        return where

    return run


def still_open(trace: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the phases of the run's first process that had begun but not ended when the signal came."""
    under_way: dict[tuple[str, int], dict[str, Any]] = {}
    for line in trace:
        if line["what"] == "signal":
            break
        key = (line["phase"], line["number"])
        if line["what"] == "begin":
            under_way[key] = line
        else:
            under_way.pop(key, None)
    return list(under_way.values())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_once_in_every_phase(stop_and_resume: Any) -> None:
    moments = random.Random(os.urandom(2))
    for phase in PHASES:
        stop_and_resume(moments, phase, signal.SIGKILL)


@pytest.mark.slow
def test_terminated(stop_and_resume: Any) -> None:
    moments = random.Random(os.urandom(2))
    for phase in ("step", "evaluation"):
        stop_and_resume(moments, phase, signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("runs", ["digits_convnet", "two_tower"], indirect=True)
def test_stopped_often(runs: Any, stop_and_resume: Any, number: signal.Signals) -> None:
    count = (MOMENTS if number == signal.SIGKILL else MOMENTS // 4) // 2
    moments = random.Random(os.urandom(2))
    found = Counter(stop_and_resume(moments, PHASES[index % len(PHASES)], number) for index in range(count))
    print(f"{runs.example.name}: {count} moments of {number.name}, by phases under way: {dict(found.most_common())}")
    assert sum(found.values()) == count
