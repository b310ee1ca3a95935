"""Finds the tests of each guarantee of docs/guarantees.md."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable
from pathlib import Path

#: The tables of the page, by the word for their rows in the code and the mutants.
TABLES = {
    "trap": "Faults of the obvious implementation",
    "fault": "Faults of tf.estimator, not repeated",
    "rule": "Rules of single parts",
}
#: Fixtures of servers that only some sessions install: moto, azurite, the testbench of GCS.
EMULATORS = ("s3", "s3_address", "azure", "azure_address", "gcs", "gcs_address")
_TEST = re.compile(r"`([^`:]+\.py::\w+(?:\[[^\]`]+\])?)`")


def tests_beside(page: str) -> dict[str, tuple[str, ...]]:
    """Returns the tests of each guarantee as `file::test`, by "trap 1", "fault 1", "rule 1" and so on."""
    found: dict[str, tuple[str, ...]] = {}
    for word, heading in TABLES.items():
        section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
        for line in section.splitlines():
            if match := re.match(r"\| (\d+) \|", line):
                found[f"{word} {match[1]}"] = tuple(_TEST.findall(line))
    return found


def missing(root: Path, file: str, test: str, case: str | None) -> list[str]:
    """Returns what is missing of a test that is named by file, function and optionally case."""
    path = root / file
    if not path.is_file():
        return [f"there is no {file}"]
    text, names, _, _ = _read(path)
    if test not in names or not test.startswith("test_"):
        return [f"{file} has no {test}"]
    if case is not None and f'"{case}"' not in text:
        return [f"{file} has no case {case!r} of {test}"]
    return []


def is_slow(root: Path, file: str, test: str) -> bool:
    """Returns whether only the session `faults` runs the test, in all its cases."""
    path = root / file
    return path.is_file() and test in _read(path)[2]


def needs_emulator(root: Path, file: str, test: str) -> bool:
    """Returns whether a test needs a server that `uv sync` does not install. It is skipped without the server."""
    path = root / file
    return path.is_file() and test in _read(path)[3]


@functools.cache
def _read(path: Path) -> tuple[str, frozenset[str], frozenset[str], frozenset[str]]:
    """Returns a test file, and the names of all its functions, of slow ones, and of those that need an emulator.

    The names of emulators are in `EMULATORS`. The result is cached, because each file is requested hundreds of times.
    """
    text = path.read_text()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    slow = [one for one in functions if "pytest.mark.slow" in map(ast.unparse, one.decorator_list)]
    needing = set(EMULATORS)
    while more := {one.name for one in functions if needing & {arg.arg for arg in one.args.args}} - needing:
        needing |= more  # a fixture of the file may use another fixture
    return text, _names(functions), _names(slow), frozenset(needing)


def _names(functions: Iterable[ast.FunctionDef]) -> frozenset[str]:
    return frozenset(one.name for one in functions)
