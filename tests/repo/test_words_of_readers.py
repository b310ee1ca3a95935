"""Tests of commands that replace words in messages of the file readers: the readers still contain these words."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READERS = ROOT / "plugins" / "inputs" / "src"
COMMANDS = (
    "plugins/canned_tabular/src/estimator_canned_tabular/cli/tabular.py",
    "plugins/exporters/src/estimator_exporters/cli/predict.py",
)


def replaced(command: str) -> dict[str, str]:
    """Returns the words that a command replaces, with their replacements."""
    body = ast.parse((ROOT / command).read_text()).body
    (found,) = (one for one in body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "_OPTIONS")
    return ast.literal_eval(found.value)


@pytest.mark.parametrize("command", COMMANDS)
def test_words_that_a_command_replaces_are_those_of_the_readers(command: str) -> None:
    words = replaced(command)
    sources = "".join(path.read_text() for path in READERS.rglob("*.py"))
    assert len(words) >= 3
    assert [one for one in words if one not in sources] == []
