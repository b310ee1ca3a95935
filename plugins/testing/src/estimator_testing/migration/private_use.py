"""Finds uses of private attributes of objects that come from the core."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from estimator_testing.migration.edits import Source
from estimator_testing.migration.findings import Finding
from estimator_testing.migration.paths import is_core


def private_use_findings(source: Source) -> Iterator[Finding]:
    """Yields private attributes of objects imported from the core, made by it, or annotated with its types."""
    ours = _names_of_core(source.tree)
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        if _root(node.value) in ours:
            new = "private: use a public method or name, or request one; by hand"
            yield Finding(line=node.lineno, old=ast.unparse(node), new=new)


def _names_of_core(tree: ast.Module) -> set[str]:
    """Returns the names in a file that refer to an object of the core."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or "estimator_core" for alias in node.names if is_core(alias.name)}
        elif isinstance(node, ast.ImportFrom) and not node.level and is_core(node.module or ""):
            names |= {alias.asname or alias.name for alias in node.names}
    imported = frozenset(names)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None and _root(node.annotation) in imported:
            names.add(node.arg)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _root(node.value) in imported:
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _root(node: ast.expr) -> str | None:
    """Returns the name that a chain of attributes, calls and subscripts begins with."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
