"""Tests that a local directory meets the contract of storages."""

import shutil
from pathlib import Path

from estimator_core.testing import StorageSuite


class TestLocalStorage(StorageSuite):
    def location(self, folder):
        return str(folder / "outer" / "root")

    def remove_root(self, location):
        shutil.rmtree(location)

    def beside(self, location):
        root = Path(location)
        return [str(path) for path in root.parent.parent.rglob("*") if root not in (path, *path.parents)]
