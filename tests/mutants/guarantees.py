"""The tests beside each guarantee of docs/guarantees.md."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

#: The tables of the page, by the word that the code and the mutants use for their rows.
TABLES = {
    "trap": "Faults of the obvious implementation",
    "fault": "Faults of tf.estimator, not repeated",
    "rule": "Rules of single parts",
}
_TEST = re.compile(r"`([^`:]+\.py::\w+(?:\[[^\]`]+\])?)`")


def tests_beside(page: str) -> dict[str, tuple[str, ...]]:
    """`file::test` of every test, by "trap 1", "fault 1", "rule 1", ... ."""
    found: dict[str, tuple[str, ...]] = {}
    for word, heading in TABLES.items():
        section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
        for line in section.splitlines():
            if match := re.match(r"\| (\d+) \|", line):
                found[f"{word} {match[1]}"] = tuple(_TEST.findall(line))
    return found


def missing(root: Path, file: str, test: str, case: str | None) -> list[str]:
    """What does not exist of a test named by file, function and perhaps case."""
    path = root / file
    if not path.is_file():
        return [f"there is no {file}"]
    text, names = _read(path)
    if test not in names or not test.startswith("test_"):
        return [f"{file} has no {test}"]
    if case is not None and f'"{case}"' not in text:
        return [f"{file} has no case {case!r} of {test}"]
    return []


@functools.cache
def _read(path: Path) -> tuple[str, frozenset[str]]:
    """A test file and the names of its functions; the same few files are asked about hundreds of times."""
    text = path.read_text()
    return text, frozenset(node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
