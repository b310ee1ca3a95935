"""Defines `project`, a folder with a policy file in which the test runs, and `site`, the installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plugins.policy.tests.packages import forget


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    forget(folder)


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)

    def write(text: str) -> Path:
        (project / "estimator.toml").write_text(text)
        return project

    return write
