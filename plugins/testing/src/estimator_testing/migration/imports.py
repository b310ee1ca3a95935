"""Finds imports of moved paths, of private ones, and of names that are not public."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from estimator_testing.migration.edits import Source
from estimator_testing.migration.findings import Finding
from estimator_testing.migration.paths import (
    CORE,
    is_core,
    is_private,
    is_public_import,
    new_module_of,
    public_names,
    whole_module,
)
from estimator_testing.migration.paths import public_modules as public

_NO_PUBLIC_NAME = "no public module has it; request one, or do without it"


def import_findings(source: Source) -> Iterator[Finding]:
    """Yields the required changes in the imports of a file and in its attribute access through modules of the core."""
    faces = _faces(source.tree)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level and is_core(node.module):
            yield from _from_import(source, node, node.module)
        elif isinstance(node, ast.Import):
            yield from _plain_import(source, node)
        elif isinstance(node, ast.Attribute):
            yield from _attribute(source, node, faces)


def _from_import(source: Source, node: ast.ImportFrom, module: str) -> Iterator[Finding]:
    homes: dict[str, list[str]] = {}
    moved, lost = False, False
    for alias in node.names:
        written = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
        if alias.name == "*":
            if module not in public():
                yield Finding(line=node.lineno, old=f"from {module} import *", new="name what you import, by hand")
            return
        if is_public_import(module, alias.name):
            homes.setdefault(f"from {module} import", []).append(written)
            continue
        whole = whole_module(f"{module}.{alias.name}")
        home = None if whole else new_module_of(module, alias.name)
        new = f"import {whole} as {alias.asname or alias.name}" if whole else f"from {home} import {written}"
        if whole is None and home is None:
            lost = True
            yield Finding(line=node.lineno, old=f"from {module} import {alias.name}", new=_NO_PUBLIC_NAME)
        elif is_private(module) or alias.name.startswith("_"):
            lost = True
            yield Finding(line=node.lineno, old=f"from {module} import {alias.name} (private)", new=new)
        else:
            moved = True
            homes.setdefault(new if whole else f"from {home} import", []).extend([] if whole else [written])
    if not moved:
        return
    indent = " " * node.col_offset
    lines = [f"{head} {', '.join(names)}".rstrip() for head, names in homes.items()]
    old = f"from {module} import {', '.join(alias.name for alias in node.names)}"
    if lost:
        yield Finding(line=node.lineno, old=old, new=f"{'; '.join(lines)} (by hand: the rest has no public name)")
    else:
        yield Finding(
            line=node.lineno, old=old, new="; ".join(lines), edits=(source.replace(node, f"\n{indent}".join(lines)),)
        )


def _plain_import(source: Source, node: ast.Import) -> Iterator[Finding]:
    for alias in node.names:
        if not is_core(alias.name) or alias.name in public():
            continue
        if alias.asname is None:
            yield _dotted_import(source, alias)
            continue
        old, new = f"import {alias.name}", whole_module(alias.name) or _home_of_all(source, alias, alias.asname)
        if new is None:
            yield Finding(line=node.lineno, old=old, new=f"import public names of {CORE} instead, by hand")
        else:
            edit = source.replace(alias, f"{new} as {alias.asname}")
            yield Finding(line=node.lineno, old=old, new=f"import {new} as {alias.asname}", edits=(edit,))


def _home_of_all(source: Source, alias: ast.alias, written: str) -> str | None:
    """Returns the one public module that has all names that a file uses of a module, or None."""
    names = [one.attr for one in ast.walk(source.tree) if _is_attribute_of(one, written)]
    homes = {new_module_of(alias.name, name) for name in names}
    return homes.pop() if len(homes) == 1 else None


def _dotted_import(source: Source, alias: ast.alias) -> Finding:
    """Returns a finding for `import estimator_core.loop.run`, which the file uses by its whole path."""
    uses = [(one, one.attr) for one in ast.walk(source.tree) if _is_attribute_of(one, alias.name)]
    homes = [new_module_of(alias.name, name) for _, name in uses]
    known = [home for home in homes if home is not None]
    if not uses or len(known) < len(homes):
        new = whole_module(alias.name)
        instead = f"import {new}, and its name wherever it is used" if new else f"import public names of {CORE} instead"
        return Finding(line=alias.lineno, old=f"import {alias.name}", new=f"{instead}, by hand")
    new = ", ".join(sorted(set(known)))
    edits = [source.replace(one, f"{home}.{name}") for (one, name), home in zip(uses, known, strict=True)]
    return Finding(
        line=alias.lineno, old=f"import {alias.name}", new=f"import {new}", edits=(source.replace(alias, new), *edits)
    )


def _is_attribute_of(node: ast.AST, path: str) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == path


def _attribute(source: Source, node: ast.Attribute, faces: Mapping[str, str]) -> Iterator[Finding]:
    """Yields a finding for `ec.export.outputs.PredictOutput`: a path through a module without submodules."""
    below, face = node.value, node.value.value if isinstance(node.value, ast.Attribute) else None
    if not isinstance(below, ast.Attribute) or face is None or (module := faces.get(ast.unparse(face))) is None:
        return
    if below.attr in public_names(module) or node.attr not in public_names(module):
        return
    new = f"{ast.unparse(face)}.{node.attr}"
    yield Finding(line=node.lineno, old=ast.unparse(node), new=new, edits=(source.replace(node, new),))


def _faces(tree: ast.Module) -> dict[str, str]:
    """Returns the names that a file uses for the public modules of the core."""
    faces: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in public() and alias.name != CORE and alias.asname is not None:
                    faces[alias.asname] = alias.name
                if is_core(alias.name) and (alias.name == CORE or alias.asname is None):
                    root = alias.asname or CORE
                    faces |= {f"{root}{one.removeprefix(CORE)}": one for one in public() if one != CORE}
        elif isinstance(node, ast.ImportFrom) and node.module == CORE and not node.level:
            faces |= {one.asname or one.name: f"{CORE}.{one.name}" for one in node.names}
    return {written: module for written, module in faces.items() if module in public()}
