"""Counts code: lines by room, and the occurrences of `Any` in them.

A code line is a physical line that holds part of a statement. Blank lines, comments and docstrings do not count, and
every line of a multi-line string counts. A room is the first part of the path in the package. A file directly in the
package counts under its own name.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True, kw_only=True)
class Count:
    """The counts of some source code.

    Attributes:
        lines: the number of code lines.
        any_names: the number of occurrences of the name `Any` outside import statements.
    """

    lines: int
    any_names: int

    @property
    def any_density(self) -> float:
        """The occurrences of `Any` per thousand code lines, or 0 without code."""
        return 1000 * self.any_names / self.lines if self.lines else 0.0


def count_source(source: str) -> Count:
    """Counts one module.

    Args:
        source: the text of the module.

    Raises:
        SyntaxError: The text is not valid Python.
    """
    tree = ast.parse(source)
    left_out = _lines_of(_docstrings(tree))
    imports = _lines_of(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    lines: set[int] = set()
    any_names = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
            any_names += token.type == tokenize.NAME and token.string == "Any" and token.start[0] not in imports
    return Count(lines=len(lines - left_out), any_names=any_names)


def count_rooms(package: Path) -> dict[str, Count]:
    """Counts the modules of a package, by room, in the order of the names.

    Args:
        package: the folder of the package. Stubs are not counted.
    """
    found: dict[str, list[Count]] = {}
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0]
        found.setdefault(room, []).append(count_source(path.read_text(encoding="utf-8")))
    return {room: total(counts) for room, counts in sorted(found.items())}


def total(counts: Iterable[Count]) -> Count:
    """Returns the sum of several counts."""
    counts = list(counts)
    return Count(lines=sum(one.lines for one in counts), any_names=sum(one.any_names for one in counts))


def _docstrings(tree: ast.Module) -> Iterable[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield first


def _lines_of(nodes: Iterable[ast.stmt]) -> set[int]:
    return {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


if __name__ == "__main__":
    rooms = count_rooms(Path(__file__).parents[2] / "estimator_core")
    for name, one in [*rooms.items(), ("all", total(rooms.values()))]:
        print(f"{name:24} {one.lines:6} lines {one.any_names:5} Any {one.any_density:7.1f} a thousand")
