"""Comments of a rewritten program: the notes, and those of changed or removed statements."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import libcst as cst
from libcst import matchers

from estimator_migration.checking import MARK

_WIDTH = 110


def own_comments(line: cst.SimpleStatementLine) -> list[cst.EmptyLine]:
    """Returns the lines of comments above a statement."""
    return [each for each in line.leading_lines if each.comment is not None]


def lost_comments(line: cst.SimpleStatementLine, now: Sequence[cst.SimpleStatementLine]) -> list[cst.EmptyLine]:
    """Returns comments inside or after a statement that are missing in its replacement."""
    return _lost(line.with_changes(leading_lines=()), now)


def lost_in_header(statement: cst.BaseCompoundStatement, now: cst.CSTNode) -> list[cst.EmptyLine]:
    """Returns the lost comments of a statement with a body, without those of the body."""
    if not isinstance(statement, _WITH_HEADER) or not isinstance(now, _WITH_HEADER):
        return []
    return _lost(_header(statement), [_header(now)])


_WITH_HEADER = cst.FunctionDef | cst.ClassDef | cst.If | cst.For | cst.While | cst.With


def _header(statement: Any) -> cst.CSTNode:
    alone = {"orelse": None} if hasattr(statement, "orelse") else {}
    return statement.with_changes(body=cst.SimpleStatementSuite([cst.Pass()]), leading_lines=(), **alone)


def parted(header: Sequence[cst.EmptyLine]) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """Returns the header of a module without its last block of comments, and that block with its empty line.

    If there is only one block, such as a licence, all of it is header.
    """
    blank = [place for place, line in enumerate(header) if line.comment is None]
    if not blank or blank[-1] + 1 == len(header):
        return list(header), []
    return list(header[: blank[-1]]), list(header[blank[-1] :])


def _lost(before: cst.CSTNode, now: Sequence[cst.CSTNode]) -> list[cst.EmptyLine]:
    found = _comments(before)
    for comment in (each for node in now for each in _comments(node)):
        if comment in found:
            found.remove(comment)
    return [cst.EmptyLine(comment=cst.Comment(comment)) for comment in found]


def _comments(node: cst.CSTNode) -> list[str]:
    return [cst.ensure_type(each, cst.Comment).value for each in matchers.findall(node, matchers.Comment())]


def with_lines(statement: Any, lines: Sequence[cst.EmptyLine]) -> Any:
    """Returns the statement with more lines above it."""
    return statement.with_changes(leading_lines=[*lines, *statement.leading_lines]) if lines else statement


def with_notes(statement: Any, texts: Iterable[str], above: Iterable[cst.EmptyLine]) -> Any:
    """Returns the statement with a comment above it for each text, unless the comment exists already."""
    lines: list[cst.EmptyLine] = list(statement.leading_lines)
    there = {line.comment.value for line in [*above, *lines] if line.comment is not None}
    for text in texts:
        wrapped = textwrap.wrap(text, _WIDTH - len(MARK), break_long_words=False, break_on_hyphens=False)
        comments = [f"{MARK if place == 0 else '#   '}{part}" for place, part in enumerate(wrapped)]
        if comments[0] not in there:
            lines += [cst.EmptyLine(comment=cst.Comment(comment)) for comment in comments]
    return statement.with_changes(leading_lines=lines)
