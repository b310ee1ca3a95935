"""The sections of docstrings: every name is described once, and belongs to the function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_FOLDERS = ("estimator_core", "plugins", "examples", "benchmarks", "tests", ".ci")
_HEADER = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Example|Source):(.*)")
_ENTRY = re.compile(r"    (\*{0,2}\w+(?:, \*{0,2}\w+)*):(?: |$)")
_Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def faults_of(node: _Documented) -> Iterator[str]:
    """Yields the faults in the sections of one docstring."""
    arguments = [] if isinstance(node, ast.ClassDef) else _parameters(node.args)
    section, seen = "", set[str]()
    for line in (ast.get_docstring(node) or "").splitlines():
        header = _HEADER.fullmatch(line)
        if header is not None:
            section, seen = header[1], set[str]()
            if header[2] and section not in ("Source", "Returns"):
                yield f"the text of {section} is on the line of its heading"
        elif line and not line.startswith(" "):
            section = ""
            if line.partition(":")[0] in arguments:
                yield f"{line.partition(':')[0]} is described outside of Args"
        entry = _ENTRY.match(line) if section in ("Args", "Attributes") else None
        for name in () if entry is None else re.findall(r"\w+", entry[1]):
            if name in seen:
                yield f"{name} is described twice"
            if section == "Args" and not isinstance(node, ast.ClassDef) and name not in arguments:
                yield f"{name} is not a parameter"
            seen.add(name)


def _parameters(args: ast.arguments) -> Sequence[str]:
    several = [one for one in (args.vararg, args.kwarg) if one is not None]
    return [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs, *several)]


@pytest.mark.parametrize("folder", _FOLDERS)
def test_every_name_is_described_once(folder: str) -> None:
    faults = [
        f"{path.relative_to(_ROOT)}:{node.lineno}: {fault}"
        for path in sorted((_ROOT / folder).rglob("*.py"))
        if not {".venv", "node_modules", "build"} & set(path.parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, _Documented)
        for fault in faults_of(node)
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("docstring", "fault"),
    [
        ("Does it.\n\nArgs:\n    one: the number.\n    one: a number.", "one is described twice"),
        ("Does it.\n\nArgs:\n    two: the number.", "two is not a parameter"),
        ("Does it.\n\none: the number.", "one is described outside of Args"),
        ("Does it.\n\nRaises: it is empty.\n    ValueError: it is empty.", "the text of Raises is on the line of its"),
    ],
)
def test_a_fault_is_named(docstring: str, fault: str) -> None:
    (node,) = ast.parse(f"def do(one):\n    {docstring!r}\n").body
    assert isinstance(node, ast.FunctionDef)
    assert [found.startswith(fault) for found in faults_of(node)] == [True]
