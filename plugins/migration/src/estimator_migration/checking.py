"""`migrate check`: every name of TensorFlow that a program uses, with its line and the required change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst import matchers

from estimator_migration.canonical import canonical
from estimator_migration.forms import judged
from estimator_migration.resolve import CHOSEN_AT_RUN_TIME, Resolved, Resolver, is_ours
from estimator_migration.rows import Row, Verdict, find, table

#: The beginning of a comment that `migrate rewrite` wrote.
MARK = "# MIGRATE: "
_MECHANICAL = (Verdict.SAME, Verdict.RENAMED)
_METHODS = {
    "tf.train.SessionRunHook": "hook",
    "tf.estimator.SessionRunHook": "hook",
    "tf.train.CheckpointSaverListener": "listener",
    "tf.estimator.CheckpointSaverListener": "listener",
    "tf.train.Optimizer": "optimizer",
}


@dataclass(frozen=True, kw_only=True)
class Use:
    """A place in a program that uses a name of TensorFlow.

    Args:
        line: the line, from 1.
        column: the column, from 1, as editors count.
        written: the name as the program writes it.
        row: the row of the name in the table.
        node: the expression, for a rewrite.
        rest: the part after the name of the row, such as ".replace"; "" for the whole name.
    """

    line: int
    column: int
    written: str
    row: Row
    node: cst.CSTNode
    rest: str = ""

    def to_json(self) -> dict[str, Any]:
        """The use as JSON values."""
        row = self.row
        texts = {"written": self.written, "name": row.name, "verdict": row.verdict.value}
        return {"line": self.line, "column": self.column, **texts, "home": row.place, "how": row.how}


def check(source: str) -> list[Use]:
    r"""Returns the uses in a program, by line.

    Args:
        source: the text of a Python 3 program.

    Raises:
        libcst.ParserSyntaxError: the source is not Python.

    Example:
        >>> [use.row.name for use in check("import tensorflow as tf\ntf.estimator.RunConfig()")]
        ['tf', 'tf.estimator.RunConfig']
    """
    return found_in(Resolver(source))


def found_in(resolver: Resolver) -> list[Use]:
    """Returns the uses and the open notes in a parsed program, by line."""
    return sorted([*uses(resolver), *_notes(resolver)], key=lambda use: (use.line, use.column))


def _notes(resolver: Resolver) -> Iterator[Use]:
    """Yields the notes of a rewrite that the user has not followed or removed yet."""
    row = Row(name="note", verdict=Verdict.REWRITE, how="Follow the note, then remove it.")
    for node in matchers.findall(resolver.module, matchers.Comment()):
        comment = cst.ensure_type(node, cst.Comment)
        if comment.value.startswith(MARK):
            place = resolver.positions[comment].start
            yield Use(line=place.line, column=place.column + 1, written=MARK.strip(), row=row, node=comment)


def uses(resolver: Resolver) -> list[Use]:
    """Returns the uses in a parsed program, by line."""
    finder = _Finder(resolver)
    resolver.module.visit(finder)
    unique = {(use.line, use.column, use.row.name): use for use in finder.found}
    return sorted(unique.values(), key=lambda use: (use.line, use.column))


class _Finder(cst.CSTVisitor):
    """Collects uses. It does not search inside the expression of a found name."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.found: list[Use] = []
        self._stars = list(_stars(resolver.module))

    def add(self, node: cst.CSTNode, row: Row, written: str, rest: str = "") -> None:
        place = self.resolver.positions[node].start
        row = judged(self.resolver, node, row, rest)
        self.found.append(Use(line=place.line, column=place.column + 1, written=written, row=row, node=node, rest=rest))

    def visit_Import(self, node: cst.Import) -> bool:
        for alias in node.names:
            name = alias.evaluated_name
            if is_ours(name):
                row = find(name) or Row(name=canonical(name), verdict=Verdict.REWRITE, how=_MODULE)
                self.add(alias, row, f"import {name}")
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        module = _dotted(node.module)
        if node.relative or not is_ours(module):
            return False
        if isinstance(node.names, cst.ImportStar):
            self.add(node, Row(name=f"{canonical(module)}.*", verdict=Verdict.REWRITE, how=_STAR), f"from {module} *")
            return False
        for alias in node.names:
            name = f"{module}.{alias.evaluated_name}"
            row = find(name) or Row(name=canonical(name), verdict=Verdict.REWRITE, how=_MODULE)
            self.add(alias, row, alias.evaluated_name)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return self._look(node)

    def visit_Name(self, node: cst.Name) -> bool:
        parent = self.resolver.parents.get(node)
        if isinstance(parent, cst.Param | cst.Arg) and node is not getattr(parent, "value", None):
            return False
        if isinstance(parent, cst.Attribute) and node is parent.attr:
            return False
        return self._look(node)

    def visit_Call(self, node: cst.Call) -> bool:
        name = getattr(node.func, "value", "")
        if name == "getattr" and self.resolver.resolve(node) is not None:
            self._look(node)
            for argument in node.args[1:]:  # the first argument is a part of the name
                argument.visit(self)
            return False
        if self.resolver.imported(node):
            self._look(node)
        resolved = self.resolver.resolve(node.func)
        row = self._row(resolved) if resolved is not None and is_ours(resolved.name) else None
        if row is not None and row.of_forms and judged(self.resolver, node.func, row).verdict is Verdict.REWRITE:
            return True
        for argument in node.args if row is not None else ():
            word = "" if argument.keyword is None else argument.keyword.value
            if row is not None and word in row.arguments:
                new = row.arguments[word]
                self.add(argument, _argument(row, word, new), f"{word}=")
        return True

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        kinds = {_METHODS.get(canonical(base)) for base in self.resolver.base_classes(node)} - {None}
        for statement in node.body.body if isinstance(node.body, cst.IndentedBlock) else ():
            if isinstance(statement, cst.FunctionDef):
                for kind in kinds:
                    row = table().get(f"{kind}.{statement.name.value}")
                    if row is not None:
                        self.add(statement, row, f"def {statement.name.value}")
        return True

    def _look(self, node: cst.BaseExpression) -> bool:
        """Records a name of TensorFlow. Returns False if its parts need no search."""
        resolved = self.resolver.resolve(node) or self._starred(node)
        if resolved is None or not is_ours(resolved.name):
            if isinstance(node, cst.Attribute):
                row = table().get(f"any.{node.attr.value}")
                if row is not None:
                    self.add(node.attr, row, f".{node.attr.value}")
            return True
        row = self._row(resolved)
        inside = _contains_call(node)
        if row is not None and not self._said_before(resolved, row, node):
            rest = canonical(resolved.name).removeprefix(row.name)
            member = inside or row.name.startswith("any.")
            where = node.attr if member and isinstance(node, cst.Attribute) else node
            self.add(where, row, _written(node, inside), rest)
        return inside

    def _row(self, resolved: Resolved) -> Row | None:
        if CHOSEN_AT_RUN_TIME in resolved.name:
            module = canonical(resolved.name.partition(f".{CHOSEN_AT_RUN_TIME}")[0])
            return Row(name=f"{module}.{CHOSEN_AT_RUN_TIME}", verdict=Verdict.UNKNOWN, how=_COMPUTED)
        if "()" in resolved.name:
            name = canonical(resolved.name)
            return table().get(name) or table().get(f"any.{name.rpartition('.')[2]}")
        return find(resolved.name)

    def _said_before(self, resolved: Resolved, row: Row, node: cst.CSTNode) -> bool:
        """Returns whether the change of another line is enough, because this line uses a variable or imported name."""
        if "()" in row.name:
            return row.verdict is Verdict.SAME
        alias = canonical(resolved.alias)
        if alias == row.name or alias.startswith(f"{row.name}."):
            return True
        first = _first(node)
        base = self.resolver.resolve(first) if isinstance(first, cst.Name) else None
        said = None if base is None else find(base.name)
        if said is row and row.bare == "value" and first is node:
            return True
        if said is None or said.verdict not in _MECHANICAL or row.verdict not in _MECHANICAL:
            return said is row and row.name == "tf" and first is node
        rest = row.name.removeprefix(said.name)
        return row.home == said.home or row.home.replace(":", ".") == said.home.replace(":", ".") + rest

    def _starred(self, node: cst.BaseExpression) -> Resolved | None:
        """Returns a name that the program does not define, if a module that is imported with a star has it."""
        first = _first(node)
        if not isinstance(first, cst.Name) or not self._stars or self.resolver.resolve(first) is not None:
            return None
        for module in self._stars:
            if f"{canonical(module)}.{first.value}" in table():
                return Resolved(name=f"{module}.{_source(node)}")
        return None


def _argument(row: Row, word: str, new: str) -> Row:
    by_place = "The argument is passed without its name."
    how = by_place if new == "/" else f"The argument is called {new}=." if new else "Leave the argument out."
    return Row(name=f"{row.name}({word}=)", verdict=Verdict.RENAMED, how=how)


_MODULE = "A module: import each name that you use from its new module."
_STAR = "Import the names one by one. Those that the table knows are listed where they are used."
_COMPUTED = "The program builds the name while it runs: check by hand which names are possible."


def _stars(module: cst.Module) -> Iterator[str]:
    for statement in module.body:
        for small in getattr(statement, "body", ()) if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.ImportFrom) and isinstance(small.names, cst.ImportStar):
                name = _dotted(small.module)
                if is_ours(name):
                    yield name


def _dotted(node: cst.BaseExpression | None) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def _first(node: cst.CSTNode) -> cst.CSTNode:
    while isinstance(node, cst.Attribute | cst.Call):
        node = node.value if isinstance(node, cst.Attribute) else node.func
    return node


def _contains_call(node: cst.CSTNode) -> bool:
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Call)


def _source(node: cst.CSTNode) -> str:
    return cst.Module(body=[]).code_for_node(node)


def _written(node: cst.CSTNode, inside: bool) -> str:
    return f".{node.attr.value}" if inside and isinstance(node, cst.Attribute) else _source(node)
