"""Tests that the imports of the core have no circle, including type-checking imports and imports in functions."""

from pathlib import Path

import pytest

from tests.repo.import_graph import find_circle, import_graph

CORE = Path(__file__).parents[2] / "estimator_core"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Makes a package of two modules, of which `b` imports `a`."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "a.py").touch()
    (folder / "b.py").write_text("from package.a import x\n")
    return folder


def test_the_core_has_no_circle() -> None:
    graph = import_graph(CORE)
    assert "estimator_core._loop.train" in graph["estimator_core._loop.train_run"]
    assert find_circle(graph) == []


@pytest.mark.parametrize(
    "back",
    [
        "import package.b\n",
        "from package.b import y\n",
        "from package import b\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package.b import y\n",
        "def later():\n    from package.b import y\n",
    ],
)
def test_a_circle_is_found(package: Path, back: str) -> None:
    assert find_circle(import_graph(package)) == []
    (package / "a.py").write_text(back)
    assert set(find_circle(import_graph(package))) == {"package.a", "package.b"}


def test_a_circle_through_the_package_itself_is_found(package: Path) -> None:
    (package / "__init__.py").write_text("from package.b import y\n")
    (package / "a.py").write_text("from package import y\n")
    assert set(find_circle(import_graph(package))) == {"package", "package.a", "package.b"}
