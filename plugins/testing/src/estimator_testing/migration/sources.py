"""The files of an installed plugin."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path


def source_files(module: str, more: Iterable[Path] = ()) -> list[Path]:
    """Returns the Python files of the package of a module, found without its import, and those below more folders.

    Args:
        module: the name of the module that the plugin's entry point names.
        more: the further files or folders, such as the tests of a checkout.
    """
    spec = importlib.util.find_spec(module.partition(".")[0])
    places = [] if spec is None else [Path(one) for one in spec.submodule_search_locations or [spec.origin or ""]]
    files: set[Path] = set()
    for place in [*places, *more]:
        files.update([place] if place.is_file() else place.rglob("*.py"))
    return sorted(files)
