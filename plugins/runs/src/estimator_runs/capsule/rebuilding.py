"""The environment of a record, built again with uv."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_runs.capsule.child import exit_code
from estimator_runs.capsule.packages import requirements


def build_environment(packages: Mapping[str, Any], folder: Path) -> Path:
    """Makes a virtual environment with exactly the packages of a record. Returns its interpreter.

    uv selects the sources of packages. Its settings and variables, such as UV_FIND_LINKS, apply.

    Args:
        packages: the packages of the record.
        folder: the folder of the environment.

    Raises:
        ArgumentError: uv is not installed, or it cannot install a package.
    """
    uv = shutil.which("uv")
    if uv is None:
        raise ArgumentError(
            "The environment of the run is built with uv, which is not installed: pip install uv. Or use the "
            "present environment: --here."
        )
    wanted = folder.with_suffix(".txt")
    wanted.parent.mkdir(parents=True, exist_ok=True)
    wanted.write_text("\n".join(requirements(packages)) + "\n")
    _called([uv, "venv", "--quiet", "--python", str(packages["python"]), str(folder)])
    python = folder / "bin" / "python"
    _called([uv, "pip", "install", "--quiet", "--no-deps", "--python", str(python), "--requirements", str(wanted)])
    return python


def _called(command: list[str]) -> None:
    with tempfile.TemporaryFile("w+") as said:
        code = exit_code(command, os.environ, None, output=subprocess.DEVNULL, errors=said)
        said.seek(0)
        if code:
            raise ArgumentError(
                f"The environment of the run cannot be built: {' '.join(command[:3])} says: {said.read().strip()} Use "
                "the present environment with --here."
            )
