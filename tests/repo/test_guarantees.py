"""Tests that every guarantee of docs/guarantees.md names existing tests, and that no number is missing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.mutants import guarantees

TABLES = {
    "Faults of the obvious implementation": range(1, 39),
    "Faults of tf.estimator, not repeated": range(1, 23),
    "Rules of single parts": range(1, 41),
}
NAMED = re.compile(r"`([^`:]+\.py)::(\w+)(?:\[([^\]`]+)\])?`")


def rows_of(text: str, heading: str) -> list[list[str]]:
    """Returns the cells of the rows of a table."""
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def problems(text: str, root: Path) -> list[str]:
    """Returns the faults of the page."""
    found: list[str] = []
    for heading, numbers in TABLES.items():
        rows = rows_of(text, heading)
        given = [int(row[0]) for row in rows]
        found += [f"{heading}: {number} is missing" for number in numbers if number not in given]
        found += [f"{heading}: {number} is there twice" for number in set(given) if given.count(number) > 1]
        for row in rows:
            where = f"{heading}, {row[0]}"
            if len(row) != 4 or not all(row):
                found.append(f"{where}: an empty cell")
                continue
            cells = row[3].split("<br>")
            found += [f"{where}: {cell} names no test" for cell in cells if not NAMED.fullmatch(cell)]
            named = [match.groups() for cell in cells if (match := NAMED.fullmatch(cell))]
            if named and all(guarantees.is_slow(root, file, test) for file, test, _ in named):
                found.append(f"{where}: all its tests are slow, so the ordinary run does not see to it")
            for one in named:
                found += [f"{where}: {problem}" for problem in guarantees.missing(root, *one)]
    return found


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "guarantees.md").read_text()


def test_every_row_names_tests_that_exist(page: str, root: Path) -> None:
    assert problems(page, root) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("| 7 | Two dropout", "| 8 | Two dropout", "7 is missing"),
        ("| 7 | Two dropout", "| 8 | Two dropout", "8 is there twice"),
        ("test_in_flight.py::test_the_host", "test_in_flight.py::test_the_guest", "has no test_the_guest"),
        ("tests/loop/test_in_flight.py", "tests/loop/test_race.py", "there is no tests/loop/test_race.py"),
        ("[missing train_op]", "[missing train_up]", "has no case 'missing train_up'"),
        ("| The request is obeyed. |", "|  |", "an empty cell"),
        (
            "`tests/scale/test_processes.py::test_a_seed_that_is_drawn_is_the_same_in_all`",
            "`tests/faults/test_interrupted_digits.py::test_terminated`",
            "all its tests are slow",
        ),
        ("`tests/loop/test_in_flight.py::", "`tests/loop/test_in_flight.py:", "names no test"),
    ],
)
def test_a_wrong_row_is_found(page: str, root: Path, old: str, new: str, problem: str) -> None:
    assert old in page
    assert any(problem in found for found in problems(page.replace(old, new, 1), root))


def test_comments_use_the_numbers_of_the_page(files: list[Path], root: Path) -> None:
    numbers = {word: TABLES[heading] for word, heading in guarantees.TABLES.items() if word != "rule"}
    wrong = [
        f"{path.relative_to(root)}: {word} {number}"
        for path in files
        if path.suffix == ".py" and path != Path(__file__)
        for word, number in re.findall(r"(?<![\w-])(trap|fault)s? (\d+)\b", path.read_text().lower())
        if int(number) not in numbers[word]
    ]
    assert wrong == []


def test_exports_have_what_they_are_serialised_with(root: Path) -> None:
    project = tomllib.loads((root / "plugins" / "exporters" / "pyproject.toml").read_text())["project"]
    assert any(requirement.startswith("flatbuffers") for requirement in project["dependencies"])
