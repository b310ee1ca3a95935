"""Tests that docs/migrate/table.md matches the data of estimator-migration."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_is_current() -> None:
    command = [sys.executable, str(ROOT / "docs" / "migrate" / "build_table.py"), "--check"]
    assert subprocess.run(command, check=False, timeout=120).returncode == 0, "python docs/migrate/build_table.py"
