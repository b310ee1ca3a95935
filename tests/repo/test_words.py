"""Tests that pages, docstrings and messages are plain English. docs/style.md has the rules, and tests/words/ the
checker.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.words import count
from tests.words.prose import Passage, of_docstring, of_module, of_page
from tests.words.rules import LONGEST, faults

QUOTED = (
    "The processes hold a line to each other.",
    "The first of these that tells of more than one counts.",
    "A value that is none of its type.",
    "Bytes that are no UTF-8.",
    "Columns in which every value is another one are skipped.",
    "Forgets what a killed run has recorded behind the step.",
    "A checkpoint of the chief's, as this process calls it.",
    "Whole records.",
    "The head gives the loss.",
    "The run goes on.",
    "A label that is no class.",
    "The page tells of files.",
    " ".join(["word"] * (LONGEST + 1)) + ".",
)
PLAIN = (
    "The processes keep a connection to each other.",
    "There is no checkpoint yet.",
    "The input is no longer open.",
    "Serve it behind a proxy.",
    "A killed process leaves half a file behind.",
    "Writes rows.",
    "The number of steps.",
    " ".join(["word"] * LONGEST) + ".",
)


def of(sentence: str) -> list[str]:
    return [fault.rule for fault in faults(Passage(line=1, kind="docstring", text=sentence))]


@pytest.mark.parametrize("sentence", QUOTED)
def test_a_bad_sentence_is_found(sentence: str) -> None:
    assert of(sentence) != []


@pytest.mark.parametrize("sentence", PLAIN)
def test_a_plain_sentence_passes(sentence: str) -> None:
    assert of(sentence) == []


def test_a_page_is_read_without_its_code() -> None:
    page = "# Gives\n\nOne\nline `gives`.\n\n```python\ngives = 1\n```\n\n"
    page += "| a cell | `x` |\n|---|---|\n- an [item](gives.md)\n"
    assert [(one.line, one.kind, one.text) for one in of_page(page)] == [
        (3, "page", "One line x."),
        (10, "cell", "a cell"),
        (10, "cell", "x"),
        (12, "page", "an item"),
    ]


def test_a_docstring_is_read_without_its_example() -> None:
    text = "Does it.\n\nArgs:\n    one: what it gives\n        to all.\n\nExample:\n    >>> gives\n    behind\n"
    assert [(one.line, one.kind, one.text) for one in of_docstring(text, 1)] == [
        (1, "docstring", "Does it."),
        (4, "entry", "what it gives to all."),
    ]


def test_a_line_that_breaks_in_mid_sentence_is_found() -> None:
    (passage,) = of_docstring("Does one thing and\nthen does the other thing, all in one line.", 7)
    assert passage.early == 7


def test_messages_are_read_whole() -> None:
    source = 'def f(a):\n    raise ValueError(f"the value {a} " "is no number at all")\n\n\nKEY = "no message"\n'
    assert [(one.line, one.text) for one in of_module(source)] == [(2, "the value x is no number at all")]


@pytest.mark.parametrize(
    "code", ["<b>it gives</b> one two three", "from a import b, what it gives", "th,td.one two{color:red} it gives"]
)
def test_code_in_a_string_is_not_read_as_prose(code: str) -> None:
    assert list(of_module(f"PAGE = {code!r}\n")) == []


def test_no_file_has_more_faults_than_recorded() -> None:
    record = count.recorded()
    more = {
        count.name_of(path): [str(one) for one in found]
        for path in count.checked()
        if len(found := count.faults_of(path)) > record.get(count.name_of(path), 0)
    }
    assert more == {}, "docs/style.md shows how to say it; the counts may only fall"


def test_the_record_only_falls() -> None:
    assert count.lowered({"a": 2, "b": 1, "gone": 3}, {"a": 5, "b": 0}) == {"a": 2}


def test_the_record_names_files_that_are_checked() -> None:
    assert set(count.recorded()) <= {count.name_of(path) for path in count.checked()}


def test_spelling(files: list[Path]) -> None:
    texts = [str(path) for path in files if path.suffix in {".md", ".py", ".pyi", ".toml"}]
    command = [sys.executable, "-m", "codespell_lib", "--quiet-level=2", *texts]
    checked = subprocess.run(command, cwd=count.ROOT, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr


def test_the_page_on_style_shows_sixty_pairs_that_pass() -> None:
    page = (count.ROOT / "docs" / "style.md").read_text().partition("## Before and after\n")[2]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 60
    assert [after for before, after in rows if before == after or of(after)] == []
