"""The Python files that a user names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from estimator_core.errors import ArgumentError


def python_files(named: Iterable[str]) -> list[Path]:
    """Files as named, and every `.py` file below a directory.

    Raises:
        ArgumentError: no such file, or a directory without a `.py` file.
    """
    found: list[Path] = []
    for name in named:
        path = Path(name)
        if not path.exists():
            raise ArgumentError(f"There is no file {name}.")
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        if not files:
            raise ArgumentError(f"The directory {name} holds no .py file.")
        found += files
    return found
