"""Tests that every case of docs/plugins/cases.md names existing tests, and faults that a suite detects."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.mutants.suites.run import on_the_page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "plugins" / "cases.md"
#: The cases that the issue about plugins names.
AT_LEAST = 50


@functools.cache
def names_in(path: Path) -> frozenset[str]:
    """Returns the names of functions and classes at the top level of a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(one.name for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef))


def faults_of(text: str, noticed: dict[str, str]) -> list[str]:
    """Returns the faults of a page: rows without a test, and tests and faults that do not exist."""
    found: list[str] = []
    for case, cell in re.findall(r"^\| ([^|]+) \| (`.*) \|$", text, re.MULTILINE):
        for one in re.findall(r"`([^`]+)`", cell):
            file, _, name = one.partition("::")
            if not name:
                found += [] if noticed.get(one, "none") != "none" else [f"{case}: no suite notices {one}"]
            elif not (ROOT / file).is_file() or name not in names_in(ROOT / file):
                found.append(f"{case}: there is no {one}")
            elif not re.match(r"test_|Test", name):
                found.append(f"{case}: {one} is no test")
    return found


@pytest.fixture(scope="module")
def noticed() -> dict[str, str]:
    return on_the_page((PAGE.parent / "mutation_score.md").read_text(encoding="utf-8"))


def test_every_case_has_tests_that_exist(noticed: dict[str, str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| (?!case \||---)", line)]
    assert len(rows) >= AT_LEAST
    assert [line for line in rows if not re.search(r"\| `[^|]+ \|$", line)] == []
    assert faults_of(text, noticed) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("::test_in_a_zip_file", "::test_in_a_rar_file", "there is no"),
        ("test_log_lines.py::", "test_lines.py::", "there is no"),
        ("`hook-seeds-the-generator`", "`hook-seeds-nothing`", "no suite notices hook-seeds-nothing"),
        ("exporter_suite.py::TestRenamingExporter", "exporter_suite.py::RenamingExporter", "is no test"),
    ],
)
def test_a_wrong_row_is_found(old: str, new: str, fault: str, noticed: dict[str, str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert old in text
    assert [fault in one for one in faults_of(text.replace(old, new, 1), noticed)] == [True]
