"""`migrate rewrite`: the mechanical part of a migration, and a marked note at every other place."""

from __future__ import annotations

import difflib
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst
from libcst import matchers

from estimator_migration.assigning import dotted_name
from estimator_migration.call_arguments import called
from estimator_migration.canonical import canonical
from estimator_migration.checking import Use, uses
from estimator_migration.comments import lost_comments, lost_in_header, own_comments, parted, with_lines, with_notes
from estimator_migration.imports import changed_import, import_line
from estimator_migration.resolve import Resolver, is_ours
from estimator_migration.rows import Row, Verdict, find, table

_REPLACED = (Verdict.SAME, Verdict.RENAMED, Verdict.DIFFERS)
_NO_SEMICOLON = cst.MaybeSentinel.DEFAULT


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """A program after the mechanical part.

    Args:
        source: the program.
        replaced: the number of places that were changed.
        notes: the number of places with a note about the required change.
    """

    source: str
    replaced: int
    notes: int

    def diff(self, before: str, name: str) -> str:
        """Returns the changes as a unified diff."""
        old, new = (list(io.StringIO(text, newline="")) for text in (before, self.source))  # keeps the line ends
        lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
        return "".join(line if line[-1] in "\r\n" else f"{line}\n\\ No newline at end of file\n" for line in lines)


def rewrite(source: str) -> Rewritten:
    r"""Rewrites names with a counterpart, their imports and their arguments. Comments and layout stay.

    Args:
        source: the text of a Python program.

    Raises:
        libcst.ParserSyntaxError: the source is not Python.

    Example:
        >>> print(rewrite("import tensorflow as tf\nmode = tf.estimator.ModeKeys.EVAL\n").source, end="")
        import estimator_core as ec
        mode = ec.ModeKeys.EVAL
    """
    resolver = Resolver(source)
    found = uses(resolver)
    plan = _Plan(resolver, found)
    changed = resolver.module.visit(_Changes(plan)).code
    return Rewritten(source=changed, replaced=len(plan.expressions) + len(plan.imports), notes=plan.noted)


class _Plan:
    """The replacements and notes of a program, by node."""

    def __init__(self, resolver: Resolver, found: Sequence[Use]) -> None:
        self.resolver = resolver
        self.expressions: dict[cst.CSTNode, str] = {}
        self.forms: dict[cst.CSTNode, Row] = {}
        self.calls: dict[cst.CSTNode, Row] = {}
        self.imports: dict[cst.CSTNode, Row] = {}
        self.notes: dict[cst.CSTNode, list[str]] = {}
        self.needed: set[str] = set()
        self.noted = 0
        kept = [use for use in found if not self._take(use)]
        self.whole = [use.node for use in kept if _is_root(use) and self._is_unused_now(use.node)]
        for use in kept:
            if use.node not in self.whole:
                self._note(use.node, self._why_kept(use))
        for use in found:
            if use.row.verdict is Verdict.DIFFERS and use not in kept:
                self._note(use.node, use.row)
        for call in matchers.findall(resolver.module, matchers.Call()):
            row = self._called(cst.ensure_type(call, cst.Call).func)
            if row is not None:
                self.calls[call] = row
        self.needed -= self._imported_already()

    def _take(self, use: Use) -> bool:
        """Returns whether a use is changed automatically, and records the change."""
        row, node = use.row, use.node
        if isinstance(node, cst.ImportAlias):
            statement = self._parent(node)
            taken = row.verdict in _REPLACED and ":" in row.home and isinstance(statement, cst.ImportFrom)
            taken = taken and statement is not None and isinstance(self._parent(statement), cst.SimpleStatementLine)
            if taken:
                self.imports[node] = row
            return taken
        if isinstance(node, cst.Arg):
            return True  # handled with its call, or by the note there
        if row.verdict not in _REPLACED or not row.home or "()" in row.name or not _plain(node):
            return False
        if self._imported_by_itself(node):
            return True
        if self._is_base_of_a_function(node, row) or self._is_hidden(node, row):
            return False
        self.expressions[node] = row.place + use.rest
        self.forms[node] = row
        self.needed |= {import_line(home) for home in (row.home, row.around) if home}
        return True

    def _called(self, function: cst.BaseExpression) -> Row | None:
        """Returns the row of a function or method whose call gets the arguments of its successor."""
        # A name that is assigned twice stands for several functions, and their arguments differ.
        by_name = (
            isinstance(function, cst.Name)
            and self.resolver.means_one(function)
            and not self.resolver.imports_in_a_line(function)
        )
        is_method = isinstance(function, cst.Attribute) and function not in self.expressions
        known = by_name or is_method or function in self.expressions
        resolved = self.resolver.resolve(function) if known else None
        if resolved is None or not is_ours(resolved.name):
            return None
        name = canonical(resolved.name)
        row = table().get(name) if "()" in name else None if is_method else find(resolved.name)
        if row is not None and row.of_forms:
            return self.forms.get(function)
        return row if row is not None and row.name == name and row.home and row.verdict in _REPLACED else None

    def _imported_already(self) -> set[str]:
        """Returns the imports of the program that precede every replacement."""
        first = min((self.resolver.line(node) for node in self.expressions), default=0)
        lines = (each for each in self.resolver.module.body if isinstance(each, cst.SimpleStatementLine))
        found = (small for line in lines if self.resolver.line(line) < first for small in line.body)
        return {self.resolver.module.code_for_node(small.with_changes(semicolon=_NO_SEMICOLON)) for small in found}

    def _is_base_of_a_function(self, node: cst.CSTNode, row: Row) -> bool:
        """Returns whether a class derives from a name whose successor is a function."""
        argument = self._parent(node)
        around = None if argument is None else self._parent(argument)
        is_base = isinstance(around, cst.ClassDef) and argument in around.bases
        return is_base and not row.home.rpartition(".")[2].rpartition(":")[2][:1].isupper()

    def _is_hidden(self, node: cst.CSTNode, row: Row) -> bool:
        """Returns whether the program uses the name of the successor's module for something else."""
        for home in filter(None, (row.home, row.around)):
            line, word = import_line(home), replace(row, home=home).place.partition(".")[0]
            if self.resolver.has_another(node, word, line.split()[1] if " as " in line else word):
                return True
        return False

    def _is_unused_now(self, alias: cst.CSTNode) -> bool:
        """Returns whether an import is removed, because all its uses are replaced. An unused import may be for other
        files.
        """
        statement = self._parent(alias)
        line = None if statement is None else self._parent(statement)
        assert isinstance(alias, cst.ImportAlias)
        used = bool(self.resolver.references(alias)) and self.resolver.is_private(alias)
        return isinstance(line, cst.SimpleStatementLine) and used and self._all_replaced(alias)

    def _all_replaced(self, alias: cst.ImportAlias) -> bool:
        found = self.resolver.references(alias)
        return all(any(each in self.expressions for each in self.resolver.above(node)) for node in found)

    def _why_kept(self, use: Use) -> Row:
        """Returns the row of a name that stays, with the other obstacles to its change."""
        row, node = use.row, use.node
        alone = isinstance(node, cst.ImportAlias) and self.resolver.is_private(node) and self._all_replaced(node)
        if _is_root(use) and alone:
            return replace(row, how="Nothing in this file uses the import. Remove it, unless another file needs it.")
        mechanical = row.verdict in _REPLACED and bool(row.home) and "()" not in row.name and _plain(node)
        if mechanical and not isinstance(node, cst.Name) and self._is_hidden(node, row):
            word = row.place.partition(".")[0]
            return replace(row, how=f"Write {row.place}, and give another name to {word} of this program.")
        return row

    def _imported_by_itself(self, node: cst.CSTNode) -> bool:
        """Returns whether the name has a separate import statement, which changes instead."""
        return isinstance(node, cst.Name)

    def _note(self, node: cst.CSTNode, row: Row) -> None:
        statement = node
        while not isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            parent = self._parent(statement)
            if parent is None:
                return
            if isinstance(parent, cst.SimpleStatementLine) and len(parent.body) > 1:
                break  # it may get a separate line
            statement = parent
        text = f"{row.name}: {row.how}" if row.how else f"{row.name}: {row.verdict.value}."
        texts = self.notes.setdefault(statement, [])
        self.noted += 1
        if text not in texts:
            texts.append(text)

    def _parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self.resolver.parents.get(node)


class _Changes(cst.CSTTransformer):
    """Applies a plan."""

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self._first = _first_import(plan)
        self._comments: list[cst.EmptyLine] = []  # of removed statements, for the next one
        self._above: dict[cst.CSTNode, list[cst.EmptyLine]] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Passes the comments of a removed statement to the next one."""
        if self._comments and isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            self._above[node], self._comments = self._comments, []
        return super().on_visit(node)

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        updated: Any = super().on_leave(original_node, updated_node)
        place = self.plan.expressions.get(original_node)
        if place is not None:
            kept = {"lpar": updated.lpar, "rpar": updated.rpar}
            return cst.parse_expression(place).with_changes(**kept)
        row = self.plan.calls.get(original_node)
        if row is not None:
            return called(updated, row)
        if isinstance(original_node, cst.BaseCompoundStatement) and isinstance(updated, cst.CSTNode):
            above = [*self._above.get(original_node, ()), *lost_in_header(original_node, updated)]
            return self._noted(original_node, with_lines(updated, above))
        return updated

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        """Changes import statements. Other statements on the same line move to a separate line."""
        pieces = [self._changed(old, new) for old, new in zip(original_node.body, updated_node.body, strict=True)]
        above = self._above.get(original_node, ())
        fresh = [_line_of(line) for line in sorted(self.plan.needed)] if original_node is self._first else []
        if all(piece is None for piece in pieces) and not fresh:
            lost = lost_comments(original_node, [updated_node])
            return self._noted(original_node, with_lines(updated_node, [*above, *lost]), *original_node.body)
        lines: list[cst.SimpleStatementLine] = []
        last = 0
        for old, piece, new in zip(original_node.body, pieces, updated_node.body, strict=True):
            made = [
                cst.SimpleStatementLine(body=[each.with_changes(semicolon=_NO_SEMICOLON)])
                for each in ([new] if piece is None else piece)
            ]
            lines += [self._noted(old, each) if number == 0 else each for number, each in enumerate(made)]
            last = len(lines) - 1 if made and len(pieces) > 1 else last
            if _names_ours(old):
                lines += fresh
                fresh = []
        if not lines:
            self._comments = [*above, *own_comments(original_node), *lost_comments(original_node, [])]
            return cst.RemoveFromParent()
        lines[0] = lines[0].with_changes(leading_lines=[*updated_node.leading_lines, *lines[0].leading_lines])
        lines[last] = lines[last].with_changes(trailing_whitespace=updated_node.trailing_whitespace)
        first = with_lines(lines[0], [*above, *lost_comments(original_node, lines)])
        return cst.FlattenSentinel([self._noted(original_node, first), *lines[1:]])

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> Any:
        """Keeps the comments of a removed last statement in its block."""
        footer, self._comments = [*self._comments, *updated_node.footer], []
        return updated_node.with_changes(footer=footer)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """Adds new imports at the top, unless an import of TensorFlow precedes all uses and takes them."""
        body, header = list(updated_node.body), list(updated_node.header)
        if self.plan.needed and self._first is None:
            place = sum(1 for _ in itertools.takewhile(_comes_first, body))
            if place == 0 and body:  # the last comment of the header describes the first statement
                header, last = parted(header)
                body[0] = with_lines(body[0], last)
            body[place:place] = [_line_of(line) for line in sorted(self.plan.needed)]
        return updated_node.with_changes(body=body, header=header, footer=[*self._comments, *updated_node.footer])

    def _changed(self, old: cst.CSTNode, new: cst.CSTNode) -> list[cst.BaseSmallStatement] | None:
        """Returns the replacement of a small statement, or None if it stays."""
        if not isinstance(old, cst.Import | cst.ImportFrom):
            return None
        return changed_import(old, self.plan.imports, self.plan.whole)

    def _noted(self, original: cst.CSTNode, statement: Any, *more: cst.CSTNode) -> Any:
        """Returns the statement with its notes above it. For the first statement, the header may hold notes too."""
        texts = [text for each in (original, *more) for text in self.plan.notes.get(each, ())]
        module = self.plan.resolver.module
        above = module.header if original is module.body[0] else ()
        return with_notes(statement, texts, above) if texts else statement


def _first_import(plan: _Plan) -> cst.CSTNode | None:
    """Returns the import of TensorFlow that new imports follow, or None if something needs them before it."""
    resolver = plan.resolver
    lines = (each for each in resolver.module.body if isinstance(each, cst.SimpleStatementLine))
    found = next((line for line in lines if any(map(_names_ours, line.body))), None)
    used = [resolver.line(node) for node in plan.expressions]
    return None if found is None or min(used, default=resolver.line(found)) < resolver.line(found) else found


def _comes_first(statement: cst.CSTNode) -> bool:
    """Returns whether a statement must precede imports: the docstring, and imports from `__future__`."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    small = statement.body[0]
    if isinstance(small, cst.ImportFrom):
        return isinstance(small.module, cst.Name) and small.module.value == "__future__"
    return isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString | cst.ConcatenatedString)


def _line_of(line: str) -> cst.SimpleStatementLine:
    return cst.ensure_type(cst.parse_statement(line), cst.SimpleStatementLine)


def _plain(node: cst.CSTNode) -> bool:
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name)


def _names_ours(statement: cst.CSTNode) -> bool:
    if isinstance(statement, cst.ImportFrom):
        return not statement.relative and statement.module is not None and is_ours(dotted_name(statement.module))
    return isinstance(statement, cst.Import) and any(is_ours(alias.evaluated_name) for alias in statement.names)


def _is_root(use: Use) -> bool:
    return isinstance(use.node, cst.ImportAlias) and use.row.name == "tf"
