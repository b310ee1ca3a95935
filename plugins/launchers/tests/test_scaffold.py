"""Tests that the package from `estimator new-plugin --kind launcher` keeps the contract."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow  # the session `template` also installs and tests one
def test_a_launcher_to_start_from(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "estimator_core._cli.main", "new-plugin", "acme-runner", "--kind", "launcher"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    written = tmp_path / "acme-runner"
    info = written / "src" / "acme_runner-0.1.0.dist-info"  # the form that an installation leaves
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-runner\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[estimator.plugins]\nacme_runner = acme_runner.plugin\n")
    (info / "RECORD").write_text("")
    path = os.pathsep.join([str(written / "src"), os.environ.get("PYTHONPATH", "")])
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(written / "tests" / "test_launcher.py"),
    ]
    done = subprocess.run(
        [*tests, "--import-mode=importlib"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "15 passed" in done.stdout
