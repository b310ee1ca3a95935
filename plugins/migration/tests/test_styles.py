"""`check` and `rewrite` over programs of differing style: no name missed, no line too many, no crash."""

import ast
import functools

import pytest

import estimator_migration
from estimator_migration import Verdict
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
