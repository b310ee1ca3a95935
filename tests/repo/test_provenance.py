"""Tests that the statement and the bills of a release detect missing, added and altered files. Session `release` signs
them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


provenance, bills = script("provenance"), script("bills")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "a.whl").write_bytes(b"wheel")
    (tmp_path / "a.cdx.json").write_bytes(b"{}")
    return tmp_path


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        (lambda folder: None, []),
        (lambda folder: (folder / "a.whl").write_bytes(b"whee1"), ["a.whl was altered"]),
        (lambda folder: (folder / "a.whl").unlink(), ["a.whl is missing"]),
        (lambda folder: (folder / "b.whl").write_bytes(b""), ["b.whl is not in the statement"]),
        (lambda folder: (folder / provenance.FILE).write_bytes(b""), []),
    ],
)
def test_a_change_after_the_statement_is_named(
    files: Path, change: Callable[[Path], object], faults: list[str]
) -> None:
    told = provenance.statement(provenance.digests(files), repository="https://r.test", commit="c" * 40, epoch="7")
    change(files)
    assert provenance.faults(told, provenance.digests(files)) == faults


def test_the_statement_names_commit_and_time(files: Path) -> None:
    told = provenance.statement(provenance.digests(files), repository="https://r.test", commit="c" * 40, epoch="7")
    given = told["predicate"]["buildDefinition"]["externalParameters"]
    assert (given["commit"], given["SOURCE_DATE_EPOCH"]) == ("c" * 40, "7")
    assert told["predicateType"] == "https://slsa.dev/provenance/v1"


def test_a_bill_lists_what_the_package_requires() -> None:
    bill = {"components": [{"name": "ml_dtypes", "version": "1"}, {"name": "jax"}]}
    assert bills.faults(bill, ["jax", "ml-dtypes"]) == ["jax has no version"]
    assert bills.faults(bill, ["numpy"]) == ["numpy is required and not listed", "jax has no version"]


def test_addresses_in_ascii_are_not_given_to_the_slow_grammar() -> None:
    asked: list[object] = []

    def slow(value: object) -> bool:
        asked.append(value)
        return value != "https://\u00e9 x"

    check = bills.address_check(slow, lambda text: None if " " in text else "a match")
    addresses: list[object] = ["https://a/b", "https://a b", "https://\u00e9/x", "https://\u00e9 x", 7]
    assert [check(one) for one in addresses] == [True, False, True, False, True]
    assert asked == addresses[2:]


def test_every_package_has_a_bill_to_be_checked() -> None:
    packages = bills.packages()
    assert len(packages) == 1 + len(list(ROOT.glob("plugins/*/pyproject.toml")))
    assert "estimator-core" in packages["estimator-heads"]
    assert "jax" in packages["estimator-core"]
