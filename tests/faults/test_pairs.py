"""Tests of kills in pairs and triples, of which the later ones target the recovery from the first, and of runs that are
frozen and replaced.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from estimator_core._checkpoint.audit import audit
from estimator_core._checkpoint.catalog import all_checkpoints
from estimator_core._journal.reading import read_lineage
from estimator_core._storage.local import LocalStorage

pytestmark = [pytest.mark.plugins, pytest.mark.libraries]

#: The phases of the first kill, and those of later kills, which are parts of the recovery at a start.
FIRST = ("step", "evaluation", "arrays", "manifest", "record", "rename", "retention", "deletion", "export")
RECOVERY = ("start", "record", "names", "trimming", "views", "compile", "evaluation", "arrays", "rename")
PAIRS, TRIPLES = int(os.environ.get("FAULT_PAIRS", "300")), int(os.environ.get("FAULT_TRIPLES", "100"))
FROZEN = int(os.environ.get("FAULT_FROZEN", "200"))
SMALL_RUN = Path(__file__).parents[1] / "journal" / "small_run.py"


@pytest.fixture
def kill_and_resume(tmp_path: Path, runs: Any, whole: Any, left: Any, draw: Any) -> Any:
    """Kills a run several times in a row, resumes it and compares the results. Returns the targeted phases."""

    def run(moments: random.Random, kills: int) -> str:
        directory = tmp_path / "killed"
        occurring = {line["phase"] for line in whole[1]}  # not every example deletes a checkpoint
        phases = [
            moments.choice([phase for phase in FIRST if phase in occurring]),
            *(moments.choice(RECOVERY) for _ in range(kills - 1)),
        ]
        for phase in phases:
            moment = draw(moments, whole[1], phase, signal.SIGKILL)
            status = runs.run(directory, moment)
            assert status in (-signal.SIGKILL, 0), (phases, (directory / "trace.log").read_text())
        assert runs.run(directory) == 0, (phases, (directory / "trace.log").read_text())
        assert left(directory) == whole[0], phases
        assert audit(directory / "run").findings == (), phases
        shutil.rmtree(directory)
        return "+".join(phases)

    return run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_in_a_pair_and_in_a_triple(kill_and_resume: Any) -> None:
    moments = random.Random(os.urandom(2))
    assert kill_and_resume(moments, 2).count("+") == 1
    assert kill_and_resume(moments, 3).count("+") == 2


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("runs", ["averaged_run"], indirect=True)
def test_a_run_with_more_to_lose_killed_in_a_pair(kill_and_resume: Any) -> None:
    """The run has averages, early stopping, best exports and two evaluations."""
    assert kill_and_resume(random.Random(os.urandom(2)), 2).count("+") == 1


@pytest.mark.timeout(600)
@pytest.mark.parametrize("runs", ["averaged_run"], indirect=True)
@pytest.mark.slow
def test_killed_after_the_last_save_and_again_in_the_end(tmp_path: Path, runs: Any, whole: Any, left: Any) -> None:
    """The kills come before the retired checkpoint is deleted, and in the last evaluation."""
    last = max(line["number"] for line in whole[1] if line["phase"] == "retention")
    for phase, number in (("retention", last), ("evaluation", 0)):
        moment = {"phase": phase, "occurrence": number, "at": "begin", "signal": signal.SIGKILL}
        assert runs.run(tmp_path, moment) == -signal.SIGKILL, (tmp_path / "trace.log").read_text()
    assert runs.run(tmp_path) == 0, (tmp_path / "trace.log").read_text()
    assert left(tmp_path) == whole[0]
    assert audit(tmp_path / "run").findings == ()


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("kills", "number"), [(2, PAIRS), (3, TRIPLES)])
@pytest.mark.parametrize("runs", ["digits_convnet", "two_tower", "averaged_run"], indirect=True)
def test_killed_in_pairs_and_triples_often(runs: Any, kill_and_resume: Any, kills: int, number: int) -> None:
    seed = int.from_bytes(os.urandom(2))
    moments = random.Random(seed)
    counted: Counter[str] = Counter()
    for _ in range(number):
        counted[kill_and_resume(moments, kills)] += 1
        print(f"{runs.example.name}, seed {seed}: {counted.total()} times {kills} kills", flush=True)
    print(
        f"{runs.example.name}, seed {seed}, {kills} kills in a row: {number} times equal and audited; {dict(counted)}"
    )
    assert counted.total() == number


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_frozen_and_replaced_often(tmp_path: Path) -> None:
    """The lock is removed, and another run takes over and ends. Then the frozen one continues, and stops with an error
    that names the other.
    """
    moments = random.Random(os.urandom(2))
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    outcomes: Counter[str] = Counter()
    for trial in range(FROZEN):
        run = tmp_path / str(trial)
        where = moments.choice(("record", "recorded", "name", "delete", "arrays", "line"))
        number = moments.randint(3, 4)  # it has taken its epoch
        frozen = subprocess.Popen(
            [sys.executable, str(SMALL_RUN), str(run), "15", where, str(number), "SIGSTOP"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        assert frozen.stdout is not None
        assert frozen.stdout.readline() == "now\n", (where, number)
        (run / "run.lock").unlink()
        successor = [sys.executable, str(SMALL_RUN), str(run), "20"]
        subprocess.run(successor, check=True, capture_output=True, env=env)
        kept = {path: Path(path, "manifest.json").read_bytes() for path in all_checkpoints(run)}
        os.kill(frozen.pid, signal.SIGCONT)
        _, errors = frozen.communicate(timeout=120)
        assert "Another run has taken over" in errors, (where, number, errors)
        assert {path: Path(path, "manifest.json").read_bytes() for path in kept} == kept, (where, number)
        lineage = read_lineage(LocalStorage(run), whole=True)
        assert (lineage.epoch, sorted(lineage.saved)) == (2, [15, 20]), (where, number)
        outcomes[where] += 1
        print(f"{outcomes.total()} trials: {dict(outcomes)}", flush=True)
        shutil.rmtree(run)
    print(dict(outcomes))
    assert outcomes.total() == FROZEN
