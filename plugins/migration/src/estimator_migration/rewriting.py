"""`migrate rewrite`: the mechanical part of a migration, and a marked note at every other place."""

from __future__ import annotations

import difflib
import io
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst import matchers

from estimator_migration.canonical import canonical
from estimator_migration.checking import Use, uses
from estimator_migration.imports import changed_import, import_line
from estimator_migration.resolve import Resolver, is_ours
from estimator_migration.rows import Row, Verdict, find

MARK = "# MIGRATE: "
_REPLACED = (Verdict.SAME, Verdict.RENAMED, Verdict.DIFFERS)
_NOTED = (Verdict.DIFFERS, Verdict.REWRITE, Verdict.GONE, Verdict.UNKNOWN)
_WIDTH = 110
_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """A program after the mechanical part.

    Args:
        source: the program.
        replaced: places that were changed.
        notes: places where a note says what to do.
    """

    source: str
    replaced: int
    notes: int

    def diff(self, before: str, name: str) -> str:
        """The changes as a unified diff."""
        old, new = (list(io.StringIO(text, newline="")) for text in (before, self.source))  # the line ends of Python
        lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
        return "".join(line if line[-1] in "\r\n" else f"{line}\n\\ No newline at end of file\n" for line in lines)


def rewrite(source: str) -> Rewritten:
    r"""Does what is mechanical: names with a counterpart, their imports and arguments; comments and layout stay.

    Args:
        source: Python.

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
        self.calls: dict[cst.CSTNode, Row] = {}
        self.imports: dict[cst.CSTNode, Row] = {}
        self.notes: dict[cst.CSTNode, list[str]] = {}
        self.needed: set[str] = set()
        self.noted = 0
        kept = [use for use in found if not self._take(use)]
        self.whole = [use.node for use in kept if _is_root(use) and not any(_says(other, use) for other in kept)]
        for use in kept:
            if use.node not in self.whole:
                self._note(use.node, use.row)
        for use in found:
            if use.row.verdict is Verdict.DIFFERS and use not in kept:
                self._note(use.node, use.row)
        for call in matchers.findall(resolver.module, matchers.Call()):
            row = self._called(cst.ensure_type(call, cst.Call).func)
            if row is not None:
                self.calls[call] = row

    def _take(self, use: Use) -> bool:
        """Whether a use is changed automatically."""
        row, node = use.row, use.node
        if isinstance(node, cst.ImportAlias):
            taken = row.verdict in _REPLACED and ":" in row.home and isinstance(self._parent(node), cst.ImportFrom)
            if taken:
                self.imports[node] = row
            return taken
        if isinstance(node, cst.Arg):
            return True  # together with its call, or with the note there
        if row.verdict not in _REPLACED or not row.home or "()" in row.name or not _plain(node):
            return False
        if self._imported_by_itself(node):
            return True
        self.expressions[node] = row.place + use.rest
        self.needed.add(import_line(row.home))
        return True

    def _called(self, function: cst.BaseExpression) -> Row | None:
        """The row of a function whose call gets the arguments of its successor."""
        # A name that is assigned twice stands for several functions, whose arguments differ.
        by_name = isinstance(function, cst.Name) and self.resolver.means_one(function)
        resolved = self.resolver.resolve(function) if by_name or function in self.expressions else None
        row = None if resolved is None or not is_ours(resolved.name) else find(resolved.name)
        whole = row is not None and resolved is not None and row.name == canonical(resolved.name)
        return row if row is not None and whole and row.home and row.verdict in _REPLACED else None

    def _imported_by_itself(self, node: cst.CSTNode) -> bool:
        """Whether the name has an import statement of its own, which changes instead."""
        return isinstance(node, cst.Name)

    def _note(self, node: cst.CSTNode, row: Row) -> None:
        statement = node
        while not isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            parent = self._parent(statement)
            if parent is None:
                return
            statement = parent
        text = f"{row.name}: {row.how}" if row.how else f"{row.name}: {row.verdict.value}."
        texts = self.notes.setdefault(statement, [])
        self.noted += 1
        if text not in texts:
            texts.append(text)

    def _parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self.resolver.parents.get(node)


class _Changes(cst.CSTTransformer):
    """Carries a plan out."""

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self._done = False
        self._depth = 0

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        updated: Any = super().on_leave(original_node, updated_node)
        place = self.plan.expressions.get(original_node)
        if place is not None:
            kept = {"lpar": updated.lpar, "rpar": updated.rpar}
            return cst.parse_expression(place).with_changes(**kept)
        row = self.plan.calls.get(original_node)
        if row is not None:
            return updated.with_changes(args=_with_defaults(_arguments(_by_keyword(updated.args, row), row), row))
        if original_node in self.plan.notes and isinstance(updated, cst.CSTNode):
            return self._noted(original_node, updated)
        return updated

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        """Changes an import statement. New imports come after the first one of TensorFlow."""
        statement = original_node.body[0]
        if not isinstance(statement, cst.Import | cst.ImportFrom) or len(original_node.body) > 1:
            return updated_node
        plan = self.plan
        changed = changed_import(statement, plan.imports, plan.whole)
        if changed is None:
            if self._done or not _names_ours(statement):
                return updated_node
            changed = [statement]
        fresh = [] if self._done else sorted(plan.needed)
        self._done = True
        lines = [cst.SimpleStatementLine(body=[each]) for each in changed or []]
        lines += [cst.ensure_type(cst.parse_statement(line), cst.SimpleStatementLine) for line in fresh]
        if not lines:
            return cst.RemoveFromParent()
        first = lines[0].with_changes(
            leading_lines=updated_node.leading_lines, trailing_whitespace=updated_node.trailing_whitespace
        )
        return cst.FlattenSentinel([self._noted(original_node, first), *lines[1:]])

    def _noted(self, original: cst.CSTNode, statement: Any) -> Any:
        """The statement with its notes above it; those of the first one are a part of the module's header."""
        texts = self.plan.notes.get(original, ())
        module = self.plan.resolver.module
        above = module.header if original is module.body[0] else ()
        return _with_notes(statement, texts, above) if texts else statement


def _by_keyword(args: Sequence[cst.Arg], row: Row) -> list[cst.Arg]:
    """The arguments, by keyword where they stand elsewhere in the successor."""
    by_place = [argument for argument in args if argument.keyword is None]
    if len(by_place) > len(row.places) or _starred(args):
        return list(args)
    moved = [
        argument.with_changes(keyword=cst.Name(place[:-1]), equal=_EQUAL) if place.endswith("=") else argument
        for argument, place in zip(by_place, row.places, strict=False)
    ]
    return [*moved, *args[len(by_place) :]]


def _arguments(args: Sequence[cst.Arg], row: Row) -> list[cst.Arg]:
    """The arguments with the names of the successor, without those that it does not have."""
    kept: list[cst.Arg] = []
    for argument in args:
        word = "" if argument.keyword is None else argument.keyword.value
        if word not in row.arguments:
            kept.append(argument)
        elif row.arguments[word]:
            kept.append(argument.with_changes(keyword=cst.Name(row.arguments[word])))
    if kept and len(kept) < len(args):
        kept[-1] = kept[-1].with_changes(comma=args[-1].comma, whitespace_after_arg=args[-1].whitespace_after_arg)
    return kept


def _with_defaults(args: Sequence[cst.Arg], row: Row) -> list[cst.Arg]:
    """The arguments, and those that TensorFlow has by default and the successor does not."""
    by_place = sum(argument.keyword is None for argument in args)
    said = {argument.keyword.value for argument in args if argument.keyword is not None}.union(row.places[:by_place])
    done = list(args)
    for name, value in row.defaults.items() if not _starred(args) else ():
        if name not in said:
            fresh = cst.Arg(keyword=cst.Name(name), value=cst.parse_expression(value), equal=_EQUAL)
            if done:
                last = done[-1]
                done[-1] = last.with_changes(comma=_COMMA, whitespace_after_arg=cst.SimpleWhitespace(""))
                fresh = fresh.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
            done.append(fresh)
    return done


def _starred(args: Iterable[cst.Arg]) -> bool:
    return any(argument.star for argument in args)


def _with_notes(statement: Any, texts: Iterable[str], above: Iterable[cst.EmptyLine]) -> Any:
    """The statement with a comment above it for each text, unless the comment exists already."""
    lines: list[cst.EmptyLine] = list(statement.leading_lines)
    there = {line.comment.value for line in [*above, *lines] if line.comment is not None}
    for text in texts:
        wrapped = textwrap.wrap(text, _WIDTH - len(MARK), break_long_words=False, break_on_hyphens=False)
        comments = [f"{MARK if place == 0 else '#   '}{part}" for place, part in enumerate(wrapped)]
        if comments[0] not in there:
            lines += [cst.EmptyLine(comment=cst.Comment(comment)) for comment in comments]
    return statement.with_changes(leading_lines=lines)


def _plain(node: cst.CSTNode) -> bool:
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name)


def _names_ours(statement: cst.Import | cst.ImportFrom) -> bool:
    words = cst.Module(body=[]).code_for_node(statement).split()
    return is_ours(words[1])


def _is_root(use: Use) -> bool:
    return isinstance(use.node, cst.ImportAlias) and use.row.name == "tf"


def _says(use: Use, root: Use) -> bool:
    """Whether an expression begins with the name that an import of TensorFlow binds."""
    alias = root.node
    assert isinstance(alias, cst.ImportAlias)
    bound = alias.evaluated_alias or alias.evaluated_name.partition(".")[0]
    return not isinstance(use.node, cst.ImportAlias) and re.match(rf"(getattr\()*{bound}\b", use.written) is not None
