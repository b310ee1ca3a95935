"""The launcher of this machine keeps its contract."""

import pytest

from estimator_launchers import LocalLauncher
from estimator_launchers.launcher_suite import LauncherSuite


class TestLocalLauncher(LauncherSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = str(tmp_path / "jobs")

    def make(self):
        return LocalLauncher(self.folder)
