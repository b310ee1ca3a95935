"""Finds the imports between the modules of a package, and the circles among them.

Type-checking imports and imports inside functions count too, because a reader has to follow them as well.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


def import_graph(package: Path) -> dict[str, set[str]]:
    """Returns the modules of a package by name, each with the modules of the package that it imports.

    Args:
        package: the folder of the package. `from package import module` imports the module, and any other name imports
            the package.
    """
    modules = {_name(path, package): path for path in package.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        graph[name] = {found for node in ast.walk(tree) for found in _imported(node, modules)} - {name}
    return graph


def find_circle(graph: Mapping[str, Set[str]]) -> list[str]:
    """Returns the modules of one circle, with the first one again at the end, or an empty list without a circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(node: ast.AST, modules: Mapping[str, Path]) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & modules.keys()
    if not isinstance(node, ast.ImportFrom) or node.module is None:
        return set()
    found = {f"{node.module}.{alias.name}" for alias in node.names}
    named = found & modules.keys()
    return named | ({node.module} & modules.keys() if named != found else set())
