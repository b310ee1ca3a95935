"""Tests that every mutant fits the sources and names tests of its guarantee, and that the runner separates survivors
from killed mutants.
"""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.mutants import guarantees, run
from tests.mutants.record import Mutant, StaleMutantError, all_mutants, own_tests, spread

AT_LEAST = 120
#: The rows that no change of a line can break, or that mutants of another row break.
WITHOUT = {
    "fault 1": "held twice, by the look at the loss and by the save: the mutants of trap 29 break one of them each",
    "trap 6": "of what becomes a package of its own",
    "trap 32": "of what becomes a package of its own",
    "trap 33": "of what becomes a package of its own",
    "trap 34": "of what becomes a package of its own",
    "trap 35": "of what becomes a package of its own",
    "trap 23": "a requirement of a package, not a line of code",
    "trap 36": "held by whole programs compiled for an export, not by one line",
    "fault 15": "each prediction makes its own objects, and no line shares them",
    "fault 13": "of what becomes a package of its own",
    "fault 14": "of what becomes a package of its own",
}

Rooms = Mapping[str, Sequence[Mutant]]


def problems(rooms: Rooms, page: str, root: Path) -> list[str]:
    """Returns what is wrong with the mutants or missing."""
    beside = guarantees.tests_beside(page)
    mutants = [mutant for of_room in rooms.values() for mutant in of_room]
    names = [mutant.name for mutant in mutants]
    found = [f"{name}: there are two of this name" for name in sorted(set(names)) if names.count(name) > 1]
    if len(mutants) < AT_LEAST:
        found.append(f"there are {len(mutants)} mutants, fewer than {AT_LEAST}")
    for mutant in mutants:
        path = root / mutant.file
        try:
            mutant.mutated(path.read_text() if path.is_file() else "")
            tests = own_tests(mutant, beside.get(mutant.guarantee, ()))
        except StaleMutantError as error:
            found.append(str(error))
            continue
        for test in tests:
            file, _, name = test.partition("::")
            function, bracket, case = name.partition("[")
            missing = guarantees.missing(root, file, function, case.removesuffix("]") if bracket else None)
            found += [f"{mutant.name}: {problem}" for problem in missing]
        if all(guarantees.needs_emulator(root, *test.partition("[")[0].split("::")) for test in tests):
            found.append(f"{mutant.name}: all its tests are skipped without an emulator of a store; name one that runs")
    held = {mutant.guarantee for mutant in mutants}
    found += [f"{row}: no mutant breaks it" for row in beside if row not in held and row not in WITHOUT]
    found += [f"{row}: there is a mutant, so it needs no excuse" for row in WITHOUT if row in held]
    return found


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "guarantees.md").read_text()


@pytest.fixture(scope="module")
def rooms() -> dict[str, tuple[Mutant, ...]]:
    return all_mutants()


def test_every_mutant_fits_and_every_row_has_one(rooms: Rooms, page: str, root: Path) -> None:
    assert problems(rooms, page, root) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"old": "no such line"}, "`old` occurs 0 times in"),
        ({"old": "import"}, "`old` occurs "),
        ({"old": "same", "new": "same"}, "`old` occurs 0 times"),
        ({"file": "estimator_core/no_such_file.py"}, "`old` occurs 0 times in estimator_core/no_such_file.py"),
        ({"new": "if if"}, "is no Python with it"),
        ({"guarantee": f"trap {99}"}, f"beside trap {99} there is no test"),
        ({"tests": ("test_of_something_else",)}, "there is no test ['test_of_something_else']"),
        ({"tests": ("test_no_damaged_file_gives_garbage[upside down]",)}, "has no case 'upside down'"),
        (
            {"guarantee": "rule 78", "tests": ("test_a_writer_whose_network_pauses_is_refused",)},
            "all its tests are skipped without an emulator of a store",
        ),
    ],
)
def test_a_wrong_mutant_is_found(
    rooms: Rooms, page: str, root: Path, changes: Mapping[str, object], problem: str
) -> None:
    (sound,) = (one for one in rooms["checkpoint"] if one.name == "a-newer-format-is-read-as-ours")
    wrong = dataclasses.replace(sound, name="wrong", **changes)  # type: ignore[arg-type]
    found = problems({**rooms, "wrong": (wrong,)}, page, root)
    assert any(line.startswith("wrong: ") and problem in line for line in found), found


def test_what_is_missing_is_found(rooms: Rooms, page: str, root: Path) -> None:
    (first, *_), *_ = rooms.values()
    found = problems({"one": (first, first)}, page, root)
    assert f"{first.name}: there are two of this name" in found
    assert f"there are 2 mutants, fewer than {AT_LEAST}" in found
    assert "trap 3: no mutant breaks it" in found


def test_a_cut_is_spread_over_the_rooms(rooms: Rooms) -> None:
    chosen = run.chosen_by(rooms, (), 43)
    quick = [mutant for mutant in run.chosen_by(rooms, (), None) if mutant.in_cut]
    assert chosen == run.chosen_by(rooms, (), 43) == spread(quick, 43)
    with_quick = [of_room for of_room in rooms.values() if any(mutant.in_cut for mutant in of_room)]
    of_rooms = [sum(mutant in of_room for mutant in chosen) for of_room in with_quick]
    assert len(chosen) == sum(of_rooms) == 43
    assert min(of_rooms) >= 1
    with pytest.raises(SystemExit, match="There is no mutant and no room nowhere"):
        run.chosen_by(rooms, ("nowhere",), None)


RULE = """
def limit(value: int) -> int:
    return max(0, min(10, value))
"""
TESTS = """
import subprocess, sys
from estimator_core.rule import limit

def test_upper():
    assert limit(11) == 10

def test_in_another_process():
    program = "from estimator_core.rule import limit; print(limit(-1))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "0\\n"
"""


@pytest.fixture
def small_repository(root: Path, tmp_path: Path) -> Path:
    """Makes a repository with one rule and its tests. Its package has the name of the installed core."""
    shutil.copytree(root / "tests" / "mutants", tmp_path / "tests" / "mutants")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = ['--import-mode=importlib']\n")
    package = tmp_path / "estimator_core"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "rule.py").write_text(RULE)
    (tmp_path / "tests" / "test_rule.py").write_text(TESTS)
    return tmp_path


def small(name: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name=name, guarantee="rule 1", file="estimator_core/rule.py", old=old, new=new, tests=tests)


SMALL = (
    small("no-upper-limit", "min(10, value)", "value", "test_upper"),
    small("no-lower-limit", "max(0, min(10, value))", "min(10, value)", "test_in_another_process"),
    small("lower-limit-untested", "max(0, min(10, value))", "min(10, value)", "test_upper"),
    small("gone", "clip(value)", "value", "test_upper"),
    small("mistaken", "min(10, value)", "mim(10, value)", "test_upper"),
    small("fails-at-import", "def limit", "raise RuntimeError('mutated')\n\n\ndef limit", "test_upper"),
)


def test_the_runner_finds_survivors_stale_and_broken_mutants(
    small_repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "WORKERS", 1)
    beside = {"rule 1": ("tests/test_rule.py::test_upper", "tests/test_rule.py::test_in_another_process")}
    outcomes = run.run_all(small_repository, SMALL, beside)
    assert {outcome.mutant.name: outcome.status for outcome in outcomes} == {
        "no-upper-limit": "killed",
        "no-lower-limit": "killed",
        "lower-limit-untested": "SURVIVED",
        "gone": "STALE",
        "mistaken": "BROKEN",
        "fails-at-import": "BROKEN",
    }
    assert (small_repository / "estimator_core" / "rule.py").read_text() == RULE
    assert run.report({"small": SMALL}, outcomes, 1.0) == 1
    assert run.report({"small": SMALL}, outcomes[:2], 1.0) == 0
    printed = capsys.readouterr().out
    assert "6 mutants, 2 killed, 4 not" in printed
    assert "SURVIVED: lower-limit-untested (estimator_core/rule.py): all tests pass" in printed


def test_tests_that_fail_without_any_mutant_end_the_run(
    small_repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "WORKERS", 1)
    (small_repository / "estimator_core" / "rule.py").write_text(RULE.replace("max(0", "max(1"))
    mutant = small("no-upper-limit", "min(10, value)", "value", "test_in_another_process")
    with pytest.raises(SystemExit, match="Tests fail without any mutant"):
        run.run_all(small_repository, [mutant], {"rule 1": ("tests/test_rule.py::test_in_another_process",)})


HANGING = """
import os, pathlib, time

def test_hangs():
    pathlib.Path("pid").write_text(str(os.getpid()))
    time.sleep(600)
"""
RUNNER = """
import json, subprocess, sys, time
server = subprocess.Popen([sys.executable, "-m", "tests.mutants.preloaded"], stdin=subprocess.PIPE, text=True)
server.stdin.write(json.dumps({"arguments": ["tests/test_rule.py"], "output": "output.txt", "seconds": 600}) + "\\n")
server.stdin.flush()
time.sleep(600)
"""


def test_tests_end_with_a_killed_runner(small_repository: Path) -> None:
    (small_repository / "tests" / "test_rule.py").write_text(HANGING)
    running = subprocess.Popen([sys.executable, "-c", RUNNER], cwd=small_repository, stdout=subprocess.DEVNULL)
    pid = small_repository / "pid"
    wait_until(lambda: pid.is_file() and pid.read_text() != "")
    running.kill()
    running.wait()
    wait_until(lambda: not Path(f"/proc/{pid.read_text()}").exists())


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


LONG_NAME = f"tests/test_rule.py::test_{'upper_' * 20}"


@pytest.mark.parametrize(
    ("status", "output", "verdict"),
    [
        (0, "", "SURVIVED"),
        (1, "FAILED tests/test_rule.py::test_upper - assert 11 == 10", "killed"),
        (1, "FAILED tests/test_rule.py::test_upper - Failed: Timeout (>120.0s) from pytest-timeout.", "TIMED OUT"),
        (1, "FAILED tests/test_rule.py::test_upper - NameError: name 'mim' is not defined", "BROKEN"),
        (1, f"/tests/test_rule.py:5: NameError: name 'mim' is not defined\nFAILED {LONG_NAME}", "BROKEN"),
        (1, f"/tests/test_rule.py:5: Failed: Timeout (>120.0s) from pytest-timeout.\nFAILED {LONG_NAME}", "TIMED OUT"),
        (1, f"/tests/test_rule.py:5: AssertionError: assert 11 == 10\nFAILED {LONG_NAME}", "killed"),
        (4, "ERROR: not found", "BROKEN"),
        (-9, "", "TIMED OUT"),
        (-11, "", "killed"),
    ],
)
def test_an_exit_status_says_what_became_of_a_mutant(status: int, output: str, verdict: str) -> None:
    assert run.judged(status, output)[0] == verdict


def test_in_a_cut_no_test_may_hang(capsys: pytest.CaptureFixture[str]) -> None:
    hangs = run.Outcome(mutant=SMALL[0], status="TIMED OUT", seconds=120.0, why="Timeout (>120.0s)")
    assert run.report({"small": SMALL}, [hangs], 120.0) == 0
    assert run.report({"small": SMALL}, [hangs], 120.0, may_time_out=False) == 1
    assert "TIMED OUT: no-upper-limit" in capsys.readouterr().out
