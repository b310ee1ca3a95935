"""Finds the former members of hooks, and names of hooks that Hook now reserves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from estimator_testing._core import METHODS, RESERVED
from estimator_testing.migration import followed, wakes
from estimator_testing.migration.edits import Edit, Source
from estimator_testing.migration.findings import Finding
from estimator_testing.migration.hook_classes import hook_classes, import_from_hooks, members, methods, renamed

_SETTLE = 'after_step, in a class with `place = "late"`: it is called after those of the other hooks'
_NEW = {**wakes.NEW, "values": followed.NEW, "settle": _SETTLE}


def hook_findings(source: Source) -> Iterator[Finding]:
    """Yields the required changes in the hooks of a file."""
    for cls in hook_classes(source.tree):
        yield from wakes.wake_findings(source, cls)
        yield from followed.values_findings(source, cls)
        yield from _settle_findings(source, cls)
        yield from _reserved_names(source, cls)
        yield from _calls(cls)


def _settle_findings(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    for one in members(cls, "settle"):
        edits = _after_step_edits(source, cls, one) if isinstance(one, ast.FunctionDef) else ()
        new = _SETTLE if edits else f"{_SETTLE}; by hand"
        yield Finding(line=one.lineno, old=f"{cls.name}.settle", new=new, edits=edits)


def _after_step_edits(source: Source, cls: ast.ClassDef, function: ast.FunctionDef) -> tuple[Edit, ...]:
    """Returns edits that make `settle` the `after_step` of a class that has none and decides itself when it is due."""
    arguments = function.args.args
    says_when = members(cls, "next_step") or members(cls, "comes_along")
    taken = [name for name in ("after_step", "before_step", "place") if members(cls, name)]
    if len(arguments) != 3 or function.decorator_list or not says_when or taken:
        return ()
    start, _ = source.span(function)
    _, end = source.span(arguments[-1])
    typed = arguments[-1].annotation is not None
    return (
        Edit(start=start, end=start, text=f'place = "late"\n\n{" " * function.col_offset}'),
        renamed(source, function, "after_step"),
        Edit(start=end, end=end, text=", out: StepOutputs" if typed else ", out"),
        *(import_from_hooks(source, "StepOutputs") if typed else ()),
    )


def _reserved_names(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    """Yields methods of the class whose names are reserved for members of Hook."""
    for one in cls.body:
        if not isinstance(one, ast.FunctionDef) or not one.name.startswith(RESERVED) or one.name in METHODS:
            continue
        new = f"_{one.name}: names that begin with {', '.join(RESERVED)} are reserved for members of Hook"
        edits = _renamed_everywhere(source, cls, one)
        yield Finding(
            line=one.lineno, old=f"{cls.name}.{one.name}", new=new if edits else f"{new}; by hand", edits=edits
        )


def _renamed_everywhere(source: Source, cls: ast.ClassDef, function: ast.FunctionDef) -> tuple[Edit, ...]:
    """Returns edits that give a method of one class a private name, if only the class itself uses it."""
    own = [one for one in ast.walk(cls) if isinstance(one, ast.Attribute) and one.attr == function.name]
    anywhere = [one for one in ast.walk(source.tree) if isinstance(one, ast.Attribute) and one.attr == function.name]
    of_self = all(isinstance(one.value, ast.Name) and one.value.id == "self" for one in own)
    if len(own) != len(anywhere) or not of_self or methods(cls, f"_{function.name}"):
        return ()
    uses = (source.replace(one, f"self._{function.name}") for one in own)
    return (renamed(source, function, f"_{function.name}"), *uses)


def _calls(cls: ast.ClassDef) -> Iterator[Finding]:
    """Yields uses of the old members by the class itself."""
    for node in ast.walk(cls):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()"):
            own = node.attr in ("slack", "next_time", "comes_along", "settle")
            if own or (node.attr == "values" and ast.unparse(node.value) == "super()"):
                yield Finding(line=node.lineno, old=ast.unparse(node), new=f"{_NEW[node.attr]}, by hand")
