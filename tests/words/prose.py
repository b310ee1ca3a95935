"""Extracts the English from a file: paragraphs of pages, docstrings and messages. Code becomes `x`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["page", "cell", "docstring", "entry", "message"]

_FENCE = re.compile(r"^ *(```|~~~)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"``[^`].*?``|`[^`]*`", flags=re.DOTALL)
_RUN_IN_HEADING = re.compile(r"^\*\*[^*]+\.\*\* ")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_ARGUMENT = re.compile(r"^\s*[\w*][\w.*, ]*: ")
_SECTIONS = frozenset({"Args", "Attributes", "Raises", "Example", "Examples", "Returns", "Yields", "Source"})
# Strings that are code of another language or of Python: markup, a style sheet, a program.
_OTHER_CODE = re.compile(r"</\w+>|^[\w., -]+\{[\w-]+:|^(?:import|from) \w", flags=re.MULTILINE)
# The fewest words of a text in the code that is a message and not a key, a format or a name.
_WORDS_OF_A_MESSAGE = 4


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A continuous passage of prose.

    Args:
        line: the number of the first line, from 1.
        kind: the kind of place that holds the words.
        text: the words, with code replaced by `x`, on one line.
        early: the number of the line that ends long before the margin in the middle of a sentence, or 0.
    """

    line: int
    kind: Kind
    text: str
    early: int = 0


def passages(path: Path) -> list[Passage]:
    """Returns the prose of a page or of a Python module."""
    text = path.read_text(encoding="utf-8")
    return list(of_page(text) if path.suffix == ".md" else of_module(text))


def of_page(text: str) -> Iterator[Passage]:
    """Yields the paragraphs, items and cells of a Markdown page, without headings and code."""
    start, block, fenced = 0, list[str](), False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = bool(_FENCE.match(line))
        ends = fence or fenced or not line.strip() or line.lstrip().startswith(("#", "|", "<!--", "!!!"))
        if block and (ends or _ITEM.match(line)):
            yield Passage(line=start, kind="page", text=_plain(_RUN_IN_HEADING.sub("", " ".join(block))))
            block = []
        if fence:
            fenced = not fenced
        elif not fenced and line.lstrip().startswith("|"):
            yield from _cells(number, line)
        elif not ends:
            start = start if block else number
            block.append(_ITEM.sub("", line).strip())


def _cells(number: int, line: str) -> Iterator[Passage]:
    for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
        if re.search(r"\w", cell):
            yield Passage(line=number, kind="cell", text=_plain(cell))


def of_module(text: str) -> Iterator[Passage]:
    """Yields docstrings, and strings that are long enough to be messages, without the code inside a string."""
    tree = ast.parse(text)
    documented: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and _is_text(first.value):
                documented.add(first.value)
                yield from of_docstring(str(first.value.value), first.lineno)
    for node in _messages(tree, documented):
        whole = "".join(_pieces(node))
        message = "" if _OTHER_CODE.search(whole) else _plain(whole)
        if len(message.split()) >= _WORDS_OF_A_MESSAGE and re.search(r"[a-z]{2} [a-z]{2}", message):
            yield Passage(line=node.lineno, kind="message", text=message)


def _messages(node: ast.AST, documented: set[ast.AST]) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Yields the strings of the code, with each formatted string as a whole."""
    for child in ast.iter_child_nodes(node):
        if child in documented or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            continue
        if isinstance(child, ast.JoinedStr) or (isinstance(child, ast.Constant) and _is_text(child)):
            yield child
        else:
            yield from _messages(child, documented)


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str)


def _pieces(node: ast.Constant | ast.JoinedStr) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
        return
    for part in node.values:
        yield str(part.value) if isinstance(part, ast.Constant) else "x"


def of_docstring(text: str, line: int) -> Iterator[Passage]:
    """Yields the paragraphs and entries of a docstring, without its examples and its indented code."""
    block: list[tuple[int, str]] = []
    section, code = "", False
    for offset, row in enumerate([*text.splitlines(), ""]):
        stripped = row.strip()
        heading = stripped.rstrip(":") if stripped.endswith(":") and stripped.rstrip(":") in _SECTIONS else ""
        code = (code or stripped.startswith((">>>", "$ "))) and bool(stripped)
        entry = bool(_ARGUMENT.match(row)) and bool(section) and section not in {"Example", "Examples"}
        item = bool(_ITEM.match(row)) or stripped.startswith("|")
        if block and (heading or code or not stripped or entry or item):
            yield _docstring_passage(block, line, section)
            block = []
        section = heading or section
        if section in {"Example", "Examples"}:
            section = section if heading or row.startswith("    ") or not stripped else ""
        if stripped and not heading and not code and section not in {"Example", "Examples"}:
            block.append((offset, row))


def _docstring_passage(block: list[tuple[int, str]], line: int, section: str) -> Passage:
    rows = [_ITEM.sub("", row).strip() for _, row in block]
    entry = _ARGUMENT.match(block[0][1])
    named = bool(entry) and bool(section)
    if entry and named:
        rows[0] = rows[0][len(entry.group().strip()) :].strip()
    early = next((line + block[n][0] for n in range(len(block) - 1) if _ends_early(block[n][1], block[n + 1][1])), 0)
    return Passage(
        line=line + block[0][0], kind="entry" if section else "docstring", text=_plain(" ".join(rows)), early=early
    )


def _ends_early(row: str, following: str) -> bool:
    """Returns whether a line ends in the middle of a sentence although the next words would have fitted in 80
    columns.
    """
    words = following.split()
    room = 80 - len(row.rstrip())
    return not row.rstrip().endswith((".", ":", "?")) and room > len(" ".join(words[:2])) + 1 and not row.endswith(",")


def _plain(text: str) -> str:
    text = _CODE.sub("x", text)
    text = _LINK.sub(r"\1", text)
    return re.sub(r"\s+", " ", re.sub(r"[*_]{2}|(?<!\w)\*|\*(?!\w)", "", text)).strip()
