"""Finds the members that hooks had: `slack`, `next_time`, `comes_along`, `values`, `settle`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from estimator_testing.migration.edits import Edit, Source
from estimator_testing.migration.findings import Finding

_FIELDS = {"slack": "within", "next_time": "time", "comes_along": "joins"}
_NEW = {
    "slack": "next_step returns Wake(step=..., within=...)",
    "next_time": "next_step returns Wake(step=..., time=...)",
    "comes_along": "next_step returns Wake(step=..., joins=True)",
    "values": 'run.follow("name") in begin, for each name',
    "settle": "nothing: the checkpoint saver is the last hook, so after_step of every other one has seen the step",
}


def hook_findings(source: Source) -> Iterator[Finding]:
    """What is to change in the hooks of a file."""
    for cls in hook_classes(source.tree):
        yield from _wake_findings(source, cls)
        yield from _values_findings(source, cls)
        for statement in _members(cls, "settle"):
            yield Finding(line=statement.lineno, old=f"{cls.name}.settle", new=_NEW["settle"])
        yield from _calls(cls)


def hook_classes(tree: ast.Module) -> list[ast.ClassDef]:
    """Classes with a base whose name ends with Hook, or that is such a class of this file."""
    found: dict[str, ast.ClassDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
            if any(base.endswith("Hook") or base in found for base in bases):
                found[node.name] = node
    return list(found.values())


def _members(cls: ast.ClassDef, name: str) -> list[ast.stmt]:
    """The statements of a class body that define a name."""
    return [
        one
        for one in cls.body
        if (isinstance(one, ast.FunctionDef) and one.name == name)
        or (isinstance(one, ast.Assign) and [ast.unparse(target) for target in one.targets] == [name])
        or (isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == name)
    ]


# ---- slack, next_time, comes_along ----------------------------------------------------------------------------------


def _wake_findings(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    """One finding a member; each carries all edits, which change the same `return` together."""
    olds = [(name, one) for name in _FIELDS for one in _members(cls, name)]
    steps = [one for one in _members(cls, "next_step") if isinstance(one, ast.FunctionDef)]
    fields = {name: _plain_value(source, one) for name, one in olds}
    returns = _returns(steps[0]) if len(steps) == 1 else []
    plain = bool(returns) and len(olds) == len(fields) and all(fields.values())
    edits: list[Edit] = []
    if olds and plain:
        rest = "".join(f", {_FIELDS[name]}={fields[name]}" for name, _ in olds)
        for one in returns:
            if one.value is not None and not (isinstance(one.value, ast.Constant) and one.value.value is None):
                edits.append(source.replace(one.value, f"Wake(step={source.segment(one.value)}{rest})"))
        annotation = steps[0].returns
        if annotation is not None:
            edits.append(source.replace(annotation, "Wake | None" if "None" in ast.unparse(annotation) else "Wake"))
        edits += [_removed(source, one) for _, one in olds]
        edits += import_from_hooks(source, "Wake")
    for name, one in olds:
        new = _NEW[name] if plain else f"{_NEW[name]}, by hand"
        yield Finding(line=one.lineno, old=f"{cls.name}.{name}", new=new, edits=tuple(edits))


def _plain_value(source: Source, statement: ast.stmt) -> str:
    """The expression that a member comes down to, if it means the same inside `next_step`; else an empty text."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        constant = statement.value
        return "True" if isinstance(constant, ast.Constant) and constant.value is True else ""
    if not isinstance(statement, ast.FunctionDef) or statement.decorator_list:
        return ""
    value = _only_return(statement)
    if value is None:
        return ""
    names = [argument.arg for argument in statement.args.args]
    used = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
    changing = any(isinstance(one, ast.NamedExpr | ast.Await | ast.Yield) for one in ast.walk(value))
    # `slack(step)` was asked with the step that is due, `next_step(step)` is asked with the one before.
    return "" if changing or used & set(names[1:]) or names[:1] != ["self"] else source.segment(value)


def _only_return(function: ast.FunctionDef) -> ast.expr | None:
    """The value of a function that does nothing but return it."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def _returns(function: ast.FunctionDef) -> list[ast.Return]:
    """The return statements of a function that are its own."""
    found: list[ast.Return] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return):
            found.append(node)
        elif not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return found


# ---- values ---------------------------------------------------------------------------------------------------------


def _values_findings(source: Source, cls: ast.ClassDef) -> Iterator[Finding]:
    for one in _members(cls, "values"):
        edits = _follow_edits(source, cls, one) if isinstance(one, ast.FunctionDef) else ()
        new = _NEW["values"] if edits else f"{_NEW['values']}, by hand"
        yield Finding(line=one.lineno, old=f"{cls.name}.values", new=new, edits=edits)


def _follow_edits(source: Source, cls: ast.ClassDef, function: ast.FunctionDef) -> tuple[Edit, ...]:
    value = _only_return(function)
    begins = [one for one in _members(cls, "begin") if isinstance(one, ast.FunctionDef)]
    if not isinstance(value, ast.Tuple | ast.List) or len(begins) > 1 or function.decorator_list:
        return ()
    if not value.elts or not all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in value.elts):
        return ()
    names = [source.segment(one) for one in value.elts]
    if begins:
        arguments = begins[0].args.args
        first = next((one for one in begins[0].body if not _is_docstring(one)), None)
        if len(arguments) != 2 or first is None or first.lineno == begins[0].lineno:
            return ()
        indent = " " * first.col_offset
        lines = "\n".join(f"{indent}{arguments[1].arg}.follow({name})" for name in names)
        return (source.insert_line(first.lineno, lines), _removed(source, function))
    typed = function.returns is not None
    indent = " " * function.col_offset
    head = "def begin(self, run: Run) -> None:" if typed else "def begin(self, run):"
    inherited = (
        [] if all(ast.unparse(base).rpartition(".")[2] == "Hook" for base in cls.bases) else ["super().begin(run)"]
    )
    body = [*inherited, *(f"run.follow({name})" for name in names)]
    begin = "\n".join([head, *(f"{indent}    {line}" for line in body)])
    return (source.replace(function, begin), *(import_from_hooks(source, "Run") if typed else ()))


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


# ---- shared ---------------------------------------------------------------------------------------------------------


def _calls(cls: ast.ClassDef) -> Iterator[Finding]:
    """Uses of the old members by the class itself."""
    for node in ast.walk(cls):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()"):
            own = node.attr in ("slack", "next_time", "comes_along", "settle")
            if own or (node.attr == "values" and ast.unparse(node.value) == "super()"):
                yield Finding(line=node.lineno, old=ast.unparse(node), new=f"{_NEW[node.attr]}, by hand")


def _removed(source: Source, statement: ast.stmt) -> Edit:
    return source.remove_lines(statement.lineno, statement.end_lineno or statement.lineno)


def import_from_hooks(source: Source, name: str) -> tuple[Edit, ...]:
    """Imports a name of `estimator_core.hooks`, if the file does not yet."""
    imports = [one for one in source.tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    ours = [one for one in imports if isinstance(one, ast.ImportFrom) and one.module == "estimator_core.hooks"]
    if any(alias.name == name for one in ours for alias in one.names):
        return ()
    if ours:
        after = next((alias for alias in ours[0].names if alias.name > name), None)
        at = source.span(after)[0] if after is not None else source.span(ours[0].names[-1])[1]
        return (Edit(start=at, end=at, text=f"{name}, " if after is not None else f", {name}"),)
    of_core = [one for one in imports if "estimator_core" in ast.unparse(one)]
    last = (of_core or imports)[-1]
    return (source.insert_line((last.end_lineno or last.lineno) + 1, f"from estimator_core.hooks import {name}"),)
