"""Finds imports of paths that have moved, of private ones, and of names that are not public."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from estimator_testing.migration.edits import Source
from estimator_testing.migration.findings import Finding
from estimator_testing.migration.paths import CORE, is_core, is_private, is_public_import, new_module_of, whole_module
from estimator_testing.migration.paths import public_modules as public

_NO_PUBLIC_NAME = "no public module has it; ask for it, or do without"


def import_findings(source: Source) -> Iterator[Finding]:
    """What is to change in the imports of a file, and in the texts that name a module of the core."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level and is_core(node.module):
            yield from _from_import(source, node, node.module)
        elif isinstance(node, ast.Import):
            yield from _plain_import(source, node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _text(node, node.value)


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
        new = whole_module(alias.name)
        old = f"import {alias.name}"
        if new is None:
            yield Finding(line=node.lineno, old=old, new=f"import public names of {CORE} instead, by hand")
        elif alias.asname is None:
            yield Finding(line=node.lineno, old=old, new=f"import {new}, and its name wherever it is used, by hand")
        else:
            edit = source.replace(alias, f"{new} as {alias.asname}")
            yield Finding(line=node.lineno, old=old, new=f"import {new} as {alias.asname}", edits=(edit,))


def _text(node: ast.Constant, value: str) -> Iterator[Finding]:
    module, _, name = value.replace(":", ".").rpartition(".")
    if not is_core(module) or not all(part.isidentifier() for part in value.replace(":", ".").split(".")):
        return
    if is_private(module) or ".".join(value.split(".")[:2]).partition(":")[0] not in public():
        home = new_module_of(module, name)
        yield Finding(line=node.lineno, old=repr(value), new=f"{home}.{name}, by hand" if home else _NO_PUBLIC_NAME)
