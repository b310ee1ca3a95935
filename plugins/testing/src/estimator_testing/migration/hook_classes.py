"""Finds the hooks of a file: their classes and members, for the other modules."""

from __future__ import annotations

import ast

from estimator_testing.migration.edits import Edit, Source


def hook_classes(tree: ast.Module) -> list[ast.ClassDef]:
    """Returns classes with a base whose name ends with Hook, or whose base is such a class of this file."""
    found: dict[str, ast.ClassDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
            if any(base.endswith("Hook") or base in found for base in bases):
                found[node.name] = node
    return list(found.values())


def members(cls: ast.ClassDef, name: str) -> list[ast.stmt]:
    """Returns the statements of a class body that define a name."""
    return [
        one
        for one in cls.body
        if (isinstance(one, ast.FunctionDef) and one.name == name)
        or (isinstance(one, ast.Assign) and [ast.unparse(target) for target in one.targets] == [name])
        or (isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == name)
    ]


def methods(cls: ast.ClassDef, name: str) -> list[ast.FunctionDef]:
    """Returns the functions of a class body with this name."""
    return [one for one in members(cls, name) if isinstance(one, ast.FunctionDef)]


def is_direct(cls: ast.ClassDef) -> bool:
    """Returns whether a class derives only from Hook itself."""
    return [ast.unparse(base).rpartition(".")[2] for base in cls.bases] == ["Hook"]


def only_return(function: ast.FunctionDef) -> ast.expr | None:
    """Returns the value of a function that only returns it."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def returns(function: ast.FunctionDef) -> list[ast.Return]:
    """Returns the return statements of a function, without those of nested functions."""
    found: list[ast.Return] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return):
            found.append(node)
        elif not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return found


def removed(source: Source, statement: ast.stmt) -> Edit:
    """Returns the edit that removes the lines of a statement."""
    return source.remove_lines(statement.lineno, statement.end_lineno or statement.lineno)


def renamed(source: Source, function: ast.FunctionDef, name: str) -> Edit:
    """Returns the edit that renames a method."""
    start, _ = source.span(function)
    at = start + source.segment(function).index(function.name, len("def"))
    return Edit(start=at, end=at + len(function.name.encode()), text=name)


def import_from_hooks(source: Source, name: str) -> tuple[Edit, ...]:
    """Returns the edits that import a name of `estimator_core.hooks`, if the file does not import it yet."""
    imports = [one for one in source.tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    ours = [one for one in imports if isinstance(one, ast.ImportFrom) and one.module == "estimator_core.hooks"]
    if any(alias.name == name for one in ours for alias in one.names):
        return ()
    if ours:
        after = next((alias for alias in ours[0].names if alias.name > name), None)
        at = source.span(after)[0] if after is not None else source.span(ours[0].names[-1])[1]
        return (Edit(start=at, end=at, text=f"{name}, " if after is not None else f", {name}"),)
    of_core = [one for one in imports if "estimator_core" in ast.unparse(one)]
    before = (of_core or imports)[-1:]
    line = (before[0].end_lineno or before[0].lineno) + 1 if before else source.tree.body[0].lineno
    return (source.insert_line(line, f"from estimator_core.hooks import {name}"),)
