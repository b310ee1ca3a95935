"""Tests that every fault fits its component, the page of scores covers these faults, and no suite is below the
target.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.suites.run import MUTANTS, PAGE, SCORED, TARGET, add_package, add_packages, on_the_page, suites

AT_LEAST = 60
#: A few faults that are also inserted here, in one process for all. The suites of their kinds take less than a second.
CUT = (
    "transform-sees-the-batch",
    "transform-drops-other-features",
    "export-check-passes-everything",
    "initial-values-returns-noise",
    "checkpoint-policy-restores-nothing",
)
#: The smallest number of faults with which each suite must be measured.
OF_A_SUITE = 8


@pytest.fixture(scope="module")
def packages() -> Path:
    folder = Path(tempfile.mkdtemp())
    add_packages(folder)
    return folder


def test_every_fault_fits_its_component(packages: Path, root: Path) -> None:
    for mutant in MUTANTS:
        (path,) = (place / mutant.file for place in (packages, root) if (place / mutant.file).is_file())
        assert mutant.mutated(path.read_text()) != path.read_text()


def test_there_are_faults_of_every_kind_and_none_twice() -> None:
    assert {mutant.guarantee for mutant in MUTANTS} == set(SCORED)
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1
    assert len(MUTANTS) >= AT_LEAST
    assert min(Counter(mutant.guarantee for mutant in MUTANTS).values()) >= OF_A_SUITE


def test_each_runs_against_a_suite_that_is_there(root: Path) -> None:
    beside = suites()
    for mutant in MUTANTS:
        names = {one.partition("::")[2] for one in beside[mutant.guarantee]}
        assert set(mutant.tests) <= names
    for one in (suite for found in beside.values() for suite in found[1:]):
        file, _, name = one.partition("::")
        assert f"class {name}(" in (root / file).read_text()


def test_the_page_has_each_fault_and_a_score_above_the_target() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w-]+) \| ([^|]+) \|$", page.partition("| fault |")[2], re.MULTILINE)
    noticed = {name: by for name, by in rows if not name.startswith("-")}
    assert set(noticed) == {mutant.name for mutant in MUTANTS}
    passed = [name for name, by in noticed.items() if by == "none"]
    scores = re.findall(r"^\| (\w+) \| `\w+` \| (\d+) \| (\d+) \|", page, re.MULTILINE)
    assert {kind for kind, *_ in scores} == set(SCORED)
    assert sum(int(faults) - int(found) for _, faults, found in scores) == len(passed)
    assert [kind for kind, faults, found in scores if int(found) < TARGET * int(faults)] == []


def test_a_cut_of_the_faults_is_noticed_and_sound_components_pass(tmp_path: Path) -> None:
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    expected: dict[str, str] = {}
    tests: list[Path] = []
    for number, name in enumerate(("", *CUT)):
        kind = by_name[name].guarantee if name else "transform"
        package = f"acme-{kind.replace('_', '-')}-{number}"
        add_package(tmp_path, package, kind)
        source = tmp_path / package / "src" / package.replace("-", "_") / f"{kind}.py"
        if name:
            source.write_text(by_name[name].mutated(source.read_text()))
            expected[package] = on_the_page(PAGE.read_text(encoding="utf-8"))[name].strip("`")
        (file,) = (tmp_path / package / "tests").glob(f"test_{kind}.py")
        tests.append(file)
    paths = [str(file.parents[1] / "src") for file in tests]
    quick = "not another_hash_seed and not takes_part"  # those start processes or train
    options = [
        "-q",
        "-k",
        quick,
        "-rfE",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        f"--rootdir={tmp_path}",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", os.devnull, *map(str, tests)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *filter(None, sys.path)])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert " passed" in done.stdout
    failed = re.findall(r"^FAILED .*?(acme-[\w-]+)/tests/\w+\.py::\w+::(test_\w+)", done.stdout, re.MULTILINE)
    assert "ERROR" not in done.stdout
    assert {package for package, _ in failed} == set(expected), done.stdout
    assert set(expected.items()) <= set(failed)
