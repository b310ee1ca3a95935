"""Tests that the import contracts of pyproject.toml fail on a violation: each is broken once in a copy of the
sources.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the packages in one folder, with the configuration."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copy2(ROOT / "pyproject.toml", tmp_path)
    for package in [ROOT / "estimator_core", *ROOT.glob("plugins/*/src/*")]:
        shutil.copytree(package, tmp_path / package.name, ignore=ignore)
    return tmp_path


def check_contracts(sources: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    return subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True, check=False)


def test_contracts_hold(sources: Path) -> None:
    result = check_contracts(sources)
    assert result.returncode == 0, result.stdout
    assert "0 broken" in result.stdout


@pytest.mark.parametrize(
    ("module", "violation", "contract"),
    [
        ("estimator_core/errors.py", "import estimator_core.heads", "Floors"),
        ("estimator_core/_metrics/__init__.py", "import estimator_core.model", "Floors"),
        ("estimator_core/errors.py", "import estimator_heads", "The core imports no plugin"),
        ("estimator_hooks/plugin.py", "import estimator_heads.plugin", "Plugins do not import each other"),
        ("estimator_plan/memory.py", "import estimator_experiment", "Plugins do not import each other"),
        ("estimator_experiment/program.py", "import estimator_plan", "Plugins do not import each other"),
    ],
)
def test_a_violation_is_named(sources: Path, module: str, violation: str, contract: str) -> None:
    path = sources / module
    path.write_text(f"{path.read_text()}\n{violation}\n")
    result = check_contracts(sources)
    assert result.returncode == 1
    broken = [line for line in result.stdout.splitlines() if " BROKEN" in line]
    assert any(line.startswith(contract) for line in broken), result.stdout
    # A plugin that the core imports is reached from every other plugin, and through it the floor imports those above.
    assert len(broken) == (3 if contract == "The core imports no plugin" else 1), result.stdout


def test_a_room_without_a_floor_is_named(sources: Path) -> None:
    (sources / "estimator_core" / "attic.py").touch()
    result = check_contracts(sources)
    assert result.returncode == 1
    assert "attic" in result.stdout
