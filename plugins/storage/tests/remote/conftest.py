"""Runs whose model_dir is a URL."""

from pathlib import Path

import pytest

from estimator_core import _model_dir
from estimator_core.plugins import Plugins
from estimator_core.testing import array_format
from plugins.storage.tests.remote import shelves


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of an empty model_dir."""
    return f"{shelves.PREFIX}{tmp_path / 'shelf' / 'run'}"


@pytest.fixture(scope="module")
def module_plugins() -> Plugins:
    """Plugins with the URL scheme and an export format."""
    return Plugins(only=["estimator-storage"], extra=[shelves, array_format])


@pytest.fixture
def plugins(module_plugins: Plugins) -> Plugins:
    """The plugins of the module."""
    return module_plugins


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch):
    """Removes the working copies, because a new process has none."""

    def forget() -> None:
        _model_dir._copies.clear()  # pyright: ignore[reportPrivateUsage]

    forget()
    yield forget
    forget()
