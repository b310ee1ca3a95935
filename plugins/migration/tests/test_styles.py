"""Tests of `check` and `rewrite` on programs of different styles: no missed name, no superfluous line, no crash."""

import ast
import functools
import itertools
from typing import Any

import pytest

import estimator_migration
from estimator_migration import Verdict
from estimator_migration.resolve import Resolver
from plugins.migration.tests.styles import expected, programs, source_of

PROGRAMS = programs()
check = functools.cache(estimator_migration.check)
rewrite = functools.cache(estimator_migration.rewrite)


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 25


@pytest.mark.parametrize("title", PROGRAMS)
def test_check_names_every_use_and_no_other(title: str) -> None:
    found = [(use.line, use.row.name, use.row.verdict is Verdict.UNKNOWN) for use in check(source_of(PROGRAMS[title]))]
    assert sorted(set(found)) == expected(PROGRAMS[title])


@pytest.mark.parametrize("title", PROGRAMS)
def test_rewritten_programs_are_programs(title: str) -> None:
    source = source_of(PROGRAMS[title])
    done = rewrite(source)
    ast.parse(done.source)
    noted = [use for use in check(source) if use.row.verdict in (Verdict.REWRITE, Verdict.GONE, Verdict.UNKNOWN)]
    for name in {use.row.name for use in noted} - {"tf"}:
        assert f"# MIGRATE: {name}: " in done.source


@pytest.mark.parametrize("title", PROGRAMS)
def test_rewriting_twice_adds_nothing(title: str) -> None:
    once = rewrite(source_of(PROGRAMS[title])).source
    assert rewrite(once).source == once


def test_a_name_that_is_assigned_from_itself_again_and_again_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count, resolve = itertools.count(), Resolver.resolve

    def counted(*given: Any) -> Any:
        if next(count) > 2000:
            pytest.fail("It is looked up once for each way through the assignments.")
        return resolve(*given)

    monkeypatch.setattr(Resolver, "resolve", counted)
    lines = [f"text = text.replace('{letter}', '').strip()" for letter in "abcdefghij"]
    turns = ["self.text = self.text.strip()"] * 5 + ["a = b.x", "b = a", "b = tf.estimator", "a.ModeKeys"]
    used = check("\n".join(["import tensorflow as tf", "text = tf.compat.as_text(b'')", *lines, *turns]))
    assert "tf.estimator.x.ModeKeys" in {use.row.name for use in used}


def test_a_class_of_the_name_of_its_base_ends() -> None:
    source = """import tensorflow as tf
class Base(tf.estimator.SessionRunHook): pass
class Middle(Base): pass
class Base(Middle):
    def after_run(self, run_context, run_values): pass
"""
    assert "hook.after_run" in {use.row.name for use in check(source)}
