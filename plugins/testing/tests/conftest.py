"""Defines `assert_each_is_caught`, which runs in this process the tests that broken components are expected to fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

#: Packages with their own tests, written for a core that no longer exists.
collect_ignore = ["written_before"]
BROKEN = Path(__file__).parent / "broken"
ROOT = Path(__file__).parents[3]


class Collected:
    """Keeps the tests that each class of a file is expected to fail, and records their outcomes."""

    def __init__(self) -> None:
        self.expected: set[str] = set()
        self.failed: dict[str, str] = {}
        self.suite_tests: set[str] = set()
        self.classes: set[str] = set()
        self.errors: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        kept = []
        for item in items:
            cls = item.cls
            self.classes.add(cls.__name__)
            self.suite_tests.add(item.originalname)
            if item.originalname in cls.fails:
                kept.append(item)
                self.expected.add(f"{cls.__name__}.{item.originalname}")
        items[:] = kept

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(str(report.longrepr))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.when == "call":
            _, cls, test = report.nodeid.rsplit("::", 2)
            self.failed[f"{cls}.{test.partition('[')[0]}"] = str(report.longrepr)
        elif report.failed:
            self.errors.append(str(report.longrepr))


def run_broken(name: str) -> Collected:
    """Runs `broken/<name>.py`."""
    collected = Collected()
    options = ["-p", "no:cacheprovider", "-p", "no:terminal", "-o", "addopts=--import-mode=importlib"]
    pytest.main([str(BROKEN / f"{name}.py"), *options, "-o", "python_files=*.py"], plugins=[collected])
    return collected


@pytest.fixture(autouse=True)
def other_processes_find_these_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds the root to the path: suites start processes that import the components under test from this folder."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def assert_each_is_caught() -> Callable[[str], None]:
    """Runs `broken/<name>.py`: at least five broken components, each of which fails as expected."""
    return check


def check(name: str) -> None:
    """Every broken component fails exactly the named tests, and every test of the suite catches one of them."""
    collected = run_broken(name)
    assert not collected.errors, collected.errors
    assert len(collected.classes) >= 5
    assert set(collected.failed) == collected.expected
    blind = collected.suite_tests - {test.partition(".")[2] for test in collected.expected}
    assert not blind, f"no broken component of {name}.py fails {sorted(blind)}"
