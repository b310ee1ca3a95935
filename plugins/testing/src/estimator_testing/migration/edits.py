"""Edits exact parts of a source text. Everything between them stays unchanged."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, order=True)
class Edit:
    """Replaces the bytes from `start` to `end` of a source in UTF-8 with `text`."""

    start: int
    end: int
    text: str


class Source:
    """A source text and the places of its syntax nodes.

    Args:
        text: valid Python.

    Raises:
        SyntaxError: the text is not valid Python.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._bytes = text.encode()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """Returns the text of a node."""
        start, end = self.span(node)
        return self._bytes[start:end].decode()

    def span(self, node: ast.expr | ast.stmt | ast.alias | ast.arg) -> tuple[int, int]:
        """Returns the start and the end of a node, in bytes."""
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def replace(self, node: ast.expr | ast.stmt | ast.alias, text: str) -> Edit:
        """Returns the edit that replaces a node with a text."""
        start, end = self.span(node)
        return Edit(start=start, end=end, text=text)

    def insert_line(self, line: int, text: str) -> Edit:
        """Returns the edit that inserts a line of text before a line (from 1)."""
        at = self._starts[line - 1]
        return Edit(start=at, end=at, text=text + "\n")

    def remove_lines(self, first: int, last: int) -> Edit:
        """Returns the edit that removes lines (from 1, both included) and the empty lines before them."""
        lines = self._bytes.splitlines()
        while first > 1 and not lines[first - 2].strip():
            first -= 1
        return Edit(start=self._starts[first - 1], end=self._starts[last], text="")

    def apply(self, edits: Iterable[Edit]) -> str:
        """Returns the text with all edits made. Equal edits are made once.

        Raises:
            ValueError: two edits change the same bytes.
        """
        content, before = self._bytes, len(self._bytes) + 1
        for edit in sorted(set(edits), reverse=True):
            if edit.end > before:
                raise ValueError(f"two edits change the same place: byte {edit.start}")
            content = content[: edit.start] + edit.text.encode() + content[edit.end :]
            before = edit.start
        return content.decode()
