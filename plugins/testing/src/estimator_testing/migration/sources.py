"""The files of an installed plugin."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path


def source_files(module: str, more: Iterable[Path] = ()) -> list[Path]:
    """The Python files of the package that holds a module, found without importing it, and those below more folders.

    Args:
        module: the module that the plugin's entry point names.
        more: further files or folders, such as the tests of a checkout.
    """
    spec = importlib.util.find_spec(module.partition(".")[0])
    places = [] if spec is None else [Path(one) for one in spec.submodule_search_locations or [spec.origin or ""]]
    files: set[Path] = set()
    for place in [*places, *more]:
        files.update([place] if place.is_file() else place.rglob("*.py"))
    return sorted(files)
