"""Turns `slack`, `next_time` and `comes_along`, the old members for a hook's next call, into one `Wake`."""

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
    renamed,
    returns,
)

#: The field of Wake for each old member.
FIELDS = {"slack": "within", "next_time": "time", "comes_along": "joins"}
NEW = {
    "slack": "next_step returns Wake(step=..., within=...)",
    "next_time": "next_step returns Wake(step=..., time=...)",
    "comes_along": "next_step returns Wake(step=..., joins=True)",
}


def wake_findings(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    """Yields one finding for each member. Each carries all edits, because they change the same `return` together."""
    olds = [(name, one) for name in FIELDS for one in members(cls, name)]
    values = {name: _value(source, cls, one) for name, one in olds}
    edits: tuple[Edit, ...] = ()
    if olds and len(olds) == len(values) and all(values.values()):
        fields = {FIELDS[name]: value for name, value in values.items()}
        answer = _answers(source, cls, fields)
        if answer:
            kept = [_kept(source, one, values[name]) for name, one in olds]
            edits = (*answer, *kept, *import_from_hooks(source, "Wake"))
    for name, one in olds:
        new = NEW[name] if edits else f"{NEW[name]}, by hand"
        yield Finding(line=one.lineno, old=f"{cls.name}.{name}", new=new, edits=edits)


def _value(source: Source, cls: ast.ClassDef, statement: ast.stmt) -> str:
    """Returns the expression for a member inside `next_step`, with `{step}` for the requested step. "": by hand."""
    if not isinstance(statement, ast.FunctionDef):
        constant = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        return "True" if isinstance(constant, ast.Constant) and constant.value is True else ""
    names = [argument.arg for argument in statement.args.args]
    if statement.decorator_list or names[:1] != ["self"] or len(names) > 2:
        return ""
    value = only_return(statement)
    if value is not None and _means_the_same(value, names[1:]):
        return source.segment(value)
    private = f"_{statement.name}"
    # It stays a method with a private name. `slack(step)` was called with the step that is due.
    return "" if members(cls, private) else f"self.{private}({'{step}' if len(names) == 2 else ''})"


def _means_the_same(value: ast.expr, parameters: list[str]) -> bool:
    """Returns whether an expression uses no parameter and has no side effect."""
    used = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
    return not used & set(parameters) and not any(isinstance(one, _CHANGING) for one in ast.walk(value))


_CHANGING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)


def _kept(source: Source, statement: ast.stmt, value: str) -> Edit:
    """Returns the edit that removes the old member, or renames it to the private name that `next_step` calls."""
    if isinstance(statement, ast.FunctionDef) and value.startswith(f"self._{statement.name}("):
        return renamed(source, statement, f"_{statement.name}")
    return removed(source, statement)


def _answers(source: Source, cls: ast.ClassDef, fields: dict[str, str]) -> list[Edit]:
    """Returns edits that add these fields to the results of `next_step`, or none if they cannot be written safely."""
    steps = methods(cls, "next_step")
    if not steps and not members(cls, "next_step"):
        return _new_next_step(source, cls, fields)
    if len(steps) != 1 or steps[0].decorator_list or [one.arg for one in steps[0].args.args][:1] != ["self"]:
        return []
    edits: list[Edit] = []
    found = returns(steps[0])
    # A hook without a step was called at its time, and together with the others.
    stays = [f"{name}={value}" for name, value in fields.items() if name != "within"]
    if not found or (stays and not isinstance(steps[0].body[-1], ast.Return | ast.Raise)):
        return []
    for one in found:
        if one.value is None or (isinstance(one.value, ast.Constant) and one.value.value is None):
            edits += [source.replace(one, f"return Wake({', '.join(stays)})")] if stays else []
            continue
        step = source.segment(one.value)
        repeats = any("{step}" in value for value in fields.values())
        if repeats and any(isinstance(part, ast.Call | ast.IfExp | ast.NamedExpr) for part in ast.walk(one.value)):
            return []
        edits.append(source.replace(one.value, f"Wake(step={step}{_rest(fields, step)})"))
    annotation = steps[0].returns
    if annotation is not None:
        edits.append(source.replace(annotation, "Wake | None" if "None" in ast.unparse(annotation) else "Wake"))
    return edits


def _new_next_step(source: Source, cls: ast.ClassDef, fields: dict[str, str]) -> list[Edit]:
    """Returns edits that write a `next_step` which adds these fields to the result of the inherited one."""
    calls = [*methods(cls, "after_step"), *methods(cls, "before_step")]
    if not is_direct(cls) or "within" in fields:  # without a step of its own, slack had no effect
        return []
    typed = any(one.returns is not None for one in calls)
    head = "def next_step(self, step: int) -> Wake:" if typed else "def next_step(self, step):"
    step = "step=step + 1" if calls else ""
    answer = f"return Wake({(step + _rest(fields, '')).removeprefix(', ')})"
    last = cls.body[-1]
    indent = " " * last.col_offset
    at = (last.end_lineno or last.lineno) + 1
    return [source.insert_line(at, f"\n{indent}{head}\n{indent}    {answer}")]


def _rest(fields: dict[str, str], step: str) -> str:
    return "".join(f", {name}={value.replace('{step}', step)}" for name, value in fields.items())
