"""The table: every public symbol of the real package has a row, and every home exists."""

import importlib
import json
from pathlib import Path

import pytest

from estimator_migration import Verdict, find, table
from estimator_migration.canonical import canonical

RECORDED: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("recorded").joinpath("symbols_2_15_1.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", RECORDED)
def test_every_public_symbol_has_a_row_of_its_own(module: str) -> None:
    names = [canonical(f"tensorflow{module.removeprefix('tf')}.{name}") for name in RECORDED[module]]
    assert [name for name in names if name not in table()] == []


def test_the_recording_is_of_the_whole_package() -> None:
    assert {module: len(names) for module, names in RECORDED.items() if "estimator" in module} == {
        "tf.estimator": 74,
        "tf.compat.v1.estimator": 83,
    }


@pytest.mark.plugins
@pytest.mark.libraries
def test_every_home_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    for row in table().values():
        module, _, name = row.home.partition(":")
        found = importlib.import_module(module) if module else None
        for part in filter(None, name.split(".")):
            assert hasattr(found, part), f"{row.name}: {row.home}"
            found = getattr(found, part)


def test_rows_say_what_to_do() -> None:
    for row in table().values():
        if row.verdict in (Verdict.DIFFERS, Verdict.REWRITE, Verdict.GONE):
            assert row.how, row.name
        if row.verdict in (Verdict.RENAMED, Verdict.DIFFERS):
            assert row.home, row.name
        if row.verdict is Verdict.GONE:
            assert not row.home, row.name


def test_a_name_that_is_not_in_the_table_is_unknown() -> None:
    for name in ("tensorflow.estimator.Estimatr", "tensorflow.contrib.learn.Nothing", "tensorflow.flying"):
        row = find(name)
        assert row is not None
        assert row.verdict is Verdict.UNKNOWN
