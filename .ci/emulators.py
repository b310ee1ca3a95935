"""Emulators of object stores for a session of nox: environment variables with their places."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import nox

_ROOT = Path(__file__).resolve().parent.parent
_UV = shutil.which("uv") or "uv"


def azurite(session: nox.Session) -> dict[str, str]:
    """Returns the place of Azure's emulator, from npm. Empty if npm cannot install it, and its tests are skipped."""
    folder, npm = _ROOT / ".nox" / "azurite", shutil.which("npm")
    if not npm:
        session.warn("there is no npm: Azure is left out")
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "azurite@3.35.0"]
    if subprocess.run(command, cwd=folder).returncode:
        session.warn("npm does not bring azurite: Azure is left out")
        return {}
    return {"AZURITE": str(folder)}


def storage_testbench(session: nox.Session, python_version: str) -> dict[str, str]:
    """Returns the place of Google's emulator, in a separate environment. Empty if no folder is named."""
    named = os.environ.get("STORAGE_TESTBENCH")
    if not named:
        session.warn("STORAGE_TESTBENCH names no folder of googleapis/storage-testbench: GCS is left out")
        return {}
    # The build of the package writes to its sources, which may belong to another user.
    shutil.copytree(named, "testbench", copy_function=shutil.copyfile)
    session.run(_UV, "venv", "--quiet", "--python", python_version, "bench", external=True)
    session.run(_UV, "pip", "install", "--quiet", "--python", "bench", "./testbench", external=True)
    python = str(Path("bench", "bin", "python").absolute())
    return {"STORAGE_TESTBENCH": str(Path("testbench").absolute()), "STORAGE_TESTBENCH_PYTHON": python}
