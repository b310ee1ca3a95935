"""Fixtures with the files that the rules of the repository check."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN_FOLDERS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "plugin_folder" in metafunc.fixturenames:
        metafunc.parametrize("plugin_folder", PLUGIN_FOLDERS, ids=lambda path: path.name)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def files() -> list[Path]:
    """Every file that is tracked or would be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in sorted(set(listed.split("\0"))) if name and (ROOT / name).is_file()]


@pytest.fixture(scope="session")
def root_project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture
def project(plugin_folder: Path) -> dict[str, Any]:
    """The pyproject.toml of one plugin."""
    return tomllib.loads((plugin_folder / "pyproject.toml").read_text())
