"""Finds old paths in texts: targets of components, programs that a test starts, and examples in docstrings."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator

from estimator_testing.migration.edits import Edit, Source
from estimator_testing.migration.findings import Finding
from estimator_testing.migration.paths import CORE, is_core, is_private, new_module_of
from estimator_testing.migration.paths import public_modules as public

#: A function that returns the old forms in a program, and the program with the new forms.
Migrate = Callable[[str], tuple[list[Finding], str]]
_EXAMPLE = re.compile(rf"^(?P<prompt>[ ]*(?:>>>|\.\.\.)[ ]+)(?P<code>(?:from|import) {CORE}.*)$", re.MULTILINE)


def text_findings(source: Source, migrate: Migrate) -> Iterator[Finding]:
    """Yields the required changes in the texts of a file.

    Args:
        source: the file.
        migrate: the function that finds and rewrites the old forms of a program inside a text.
    """
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CORE in node.value:
            if "\n" in node.value:
                yield from _programs(source, node, node.value, migrate)
            else:
                yield from _path(source, node, node.value)


def _path(source: Source, node: ast.Constant, value: str) -> Iterator[Finding]:
    """Yields a finding for the path of a module or of an object in it, as in a component's target."""
    module, _, name = value.replace(":", ".").rpartition(".")
    if not is_core(module) or not all(part.isidentifier() for part in value.replace(":", ".").split(".")):
        return
    if is_private(module) or ".".join(value.split(".")[:2]).partition(":")[0] not in public() or _is_deep(value):
        home = new_module_of(module, name)
        if home is None:
            yield Finding(
                line=node.lineno, old=repr(value), new="no public module has it; request one, or do without it"
            )
            return
        # A target is looked up by its path. Any other use of a path with dots, such as a patch, cannot be recognised.
        edits = _written(source, node, f"{home}:{name}") if ":" in value and not is_private(module) else ()
        sign = ":" if edits else "."
        yield Finding(
            line=node.lineno, old=repr(value), new=f"{home}{sign}{name}{'' if edits else ', by hand'}", edits=edits
        )


def _is_deep(value: str) -> bool:
    """Returns whether a target is in a module below a public one."""
    return ":" in value and value.partition(":")[0] not in public()


def _programs(source: Source, node: ast.Constant, value: str, migrate: Migrate) -> Iterator[Finding]:
    """Yields findings in a text that is Python, or that has examples in Python."""
    flat = textwrap.dedent(value)
    margin = next((line[: len(line) - len(line.lstrip())] for line in value.splitlines() if line.strip()), "")
    try:
        ast.parse(flat)
    except SyntaxError:
        yield from _examples(source, node, value, migrate)
        return
    findings, after = migrate(flat)
    same = textwrap.indent(flat, margin) == value or flat == value
    new = textwrap.indent(after, margin) if flat != value else after
    yield from _all_at_once(source, node, findings, new if same and after != flat else None)


def _examples(source: Source, node: ast.Constant, value: str, migrate: Migrate) -> Iterator[Finding]:
    """Yields findings in imports in the examples of a docstring."""
    found: list[Finding] = []

    def rewritten(match: re.Match[str]) -> str:
        try:
            findings, after = migrate(match["code"] + "\n")
        except SyntaxError:  # the first line of a longer statement
            return match[0]
        line = value.count("\n", 0, match.start())
        found.extend(Finding(line=one.line + line, old=one.old, new=one.new, edits=one.edits) for one in findings)
        return "\n".join(match["prompt"] + one for one in after.splitlines())

    after = _EXAMPLE.sub(rewritten, value)
    yield from _all_at_once(source, node, found, after if after != value else None)


def _all_at_once(source: Source, node: ast.Constant, findings: list[Finding], after: str | None) -> Iterator[Finding]:
    """Yields the findings inside a text. Those that can be rewritten carry the change of the whole text."""
    edits = () if after is None else _written(source, node, after)
    for one in findings:
        new = one.new if edits or not one.fixable else f"{one.new}, by hand"
        yield Finding(line=node.lineno + one.line - 1, old=one.old, new=new, edits=edits if one.fixable else ())


def _written(source: Source, node: ast.Constant, text: str) -> tuple[Edit, ...]:
    """Returns the edit that replaces the text of a literal. None for a literal with escapes or several parts."""
    literal = source.segment(node)
    for quotes in ('"""', "'''", '"', "'"):
        if literal == f"{quotes}{node.value}{quotes}":
            return (source.replace(node, f"{quotes}{text}{quotes}"),)
    return ()
