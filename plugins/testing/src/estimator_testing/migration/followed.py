"""Turns `values`, the old list of outputs that a hook requested for every step, into calls of `run.follow`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from estimator_testing.migration.edits import Edit, Source
from estimator_testing.migration.findings import Finding
from estimator_testing.migration.hook_classes import (
    import_from_hooks,
    is_direct,
    members,
    methods,
    only_return,
    removed,
    returns,
)

NEW = 'run.follow("name") in begin, for each name'


def values_findings(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    """Yields the findings about `values` of a hook class."""
    for one in members(cls, "values"):
        edits = _edits(source, cls, one) if isinstance(one, ast.FunctionDef) else ()
        yield Finding(line=one.lineno, old=f"{cls.name}.values", new=NEW if edits else f"{NEW}, by hand", edits=edits)


def _edits(source: Source, cls: ast.ClassDef, function: ast.FunctionDef) -> tuple[Edit, ...]:
    value = only_return(function)
    if value is None or function.decorator_list or [one.arg for one in function.args.args] != ["self"]:
        return ()
    names = _constants(source, value)
    if names == []:
        return ()
    if names is None:
        # The loop read it after `after_create`, when everything that it uses is known.
        return _in(
            source, cls, function, "after_create", [f"for name in {source.segment(value)}:", "    {run}.follow(name)"]
        )
    return _in(source, cls, function, "begin", [f"{{run}}.follow({name})" for name in names])


def _constants(source: Source, value: ast.expr) -> list[str] | None:
    """Returns the names, if they are literals."""
    if not isinstance(value, ast.Tuple | ast.List):
        return None
    if not all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in value.elts):
        return None
    return [source.segment(one) for one in value.elts]


def _in(
    source: Source, cls: ast.ClassDef, function: ast.FunctionDef, method: str, lines: list[str]
) -> tuple[Edit, ...]:
    """Returns edits that insert lines into a method of the class. A missing method replaces `function`."""
    there = methods(cls, method)
    if there:
        into = _into(source, there[0], lines, at_end=method == "after_create") if len(there) == 1 else ()
        return (*into, removed(source, function)) if into else ()
    typed = function.returns is not None
    indent = " " * function.col_offset
    head = f"def {method}(self, run: Run) -> None:" if typed else f"def {method}(self, run):"
    inherited = [] if is_direct(cls) else [f"super().{method}(run)"]
    body = [*inherited, *(line.replace("{run}", "run") for line in lines)]
    made = "\n".join([head, *(f"{indent}    {line}" for line in body)])
    return (source.replace(function, made), *(import_from_hooks(source, "Run") if typed else ()))


def _into(source: Source, method: ast.FunctionDef, lines: list[str], *, at_end: bool) -> tuple[Edit, ...]:
    """Returns edits that insert lines at the beginning or the end of an existing method."""
    arguments = [one.arg for one in method.args.args]
    own = [one for one in method.body if not _is_docstring(one)]
    if len(arguments) != 2 or not own or own[0].lineno == method.lineno or (at_end and returns(method)):
        return ()
    indent = " " * own[0].col_offset
    text = "\n".join(indent + line.replace("{run}", arguments[1]) for line in lines)
    return (source.insert_line((own[-1].end_lineno or own[-1].lineno) + 1 if at_end else own[0].lineno, text),)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
