"""Tests of five programs of tf.estimator users: the names that are found in them, their number, and the rewrites."""

import ast
import functools
import json
import re
from pathlib import Path

import pytest

import estimator_migration
from estimator_migration import Verdict

check = functools.cache(estimator_migration.check)
rewrite = functools.cache(estimator_migration.rewrite)
HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
#: Lines that must change, and the names on them, checked by hand.
COUNTED: dict[str, dict[str, list[str]]] = json.loads((HERE / "recorded" / "programs.json").read_text())
# Modules and names that the programs import from TensorFlow, or alias. `fc` is left out: one changed line restores it.
SAYS_TENSORFLOW = re.compile(
    r"(?<![\w.\"'])(tf|slim|v1)\.\w|^(import|from) tensorflow|def (after_create_session|after_run)\b"
)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_lines_are_those_counted(path: Path) -> None:
    found: dict[str, list[str]] = {}
    for use in check(path.read_text()):
        found.setdefault(str(use.line), []).append(use.row.name)
    assert found == COUNTED[path.stem]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_no_line_that_says_tensorflow_is_missed(path: Path) -> None:
    """The lines come from a regular expression, which does not depend on the table."""
    texts = set[int]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno != node.lineno:
            texts |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = enumerate(path.read_text().splitlines(), 1)
    said = {number for number, line in lines if number not in texts and SAYS_TENSORFLOW.search(line)}
    assert said <= {use.line for use in check(path.read_text())}
    assert len(said) > 20


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_everything_in_them_is_known(path: Path) -> None:
    assert [use.row.name for use in check(path.read_text()) if use.row.verdict is Verdict.UNKNOWN] == []


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_ported_program_names_nothing_of_tensorflow(path: Path) -> None:
    assert check((HERE / "ported" / path.name).read_text()) == []


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_rewrite_keeps_comments_and_layout(path: Path) -> None:
    before = path.read_text()
    done = rewrite(before)
    ast.parse(done.source)
    assert done.replaced > 3
    assert done.notes > 10
    changed = {line for line in done.diff(before, path.name).splitlines() if line.startswith("-")}
    uses = {use.line for use in check(before)}
    for number, line in enumerate(before.splitlines(), 1):
        if line.strip() and number not in uses:
            assert f"-{line}" not in changed, (number, line)


def test_rewrite_of_what_is_mechanical() -> None:
    source = (
        "import tensorflow as tf  # the one import\n"
        "\n"
        "config = tf.estimator.ModeKeys.EVAL\n"
        "x = tf.reduce_sum(y, reduction_indices=1,  # rows\n"
        '                  keep_dims=True, name="x")\n'
    )
    assert rewrite(source).source == (
        "import estimator_core as ec  # the one import\n"
        "import jax.numpy as jnp\n"
        "\n"
        "config = ec.ModeKeys.EVAL\n"
        "x = jnp.sum(y, axis=1,  # rows\n"
        "                  keepdims=True)\n"
    )
