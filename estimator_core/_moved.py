"""Public names that live in packages of their own: where each is, and what to install where it is not.

This is the only module of the core that names a package of this repository.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

#: Public name -> (module that holds it, distribution that brings the module).
MOVED: dict[str, tuple[str, str]] = {
    "VocabInfo": ("estimator_warm_start", "estimator-warm-start"),
    "WarmStartSettings": ("estimator_warm_start", "estimator-warm-start"),
    "get_assignment_map_from_checkpoint": ("estimator_warm_start", "estimator-warm-start"),
    "init_from_checkpoint": ("estimator_warm_start", "estimator-warm-start"),
}


def load_moved(name: str) -> Any:
    """The object behind a public name of `estimator_core` that lives in a package of its own.

    Raises:
        AttributeError: the package is not installed; the message names it.
    """
    module, distribution = MOVED[name]
    return getattr(import_moved(module, distribution, f"estimator_core.{name}"), name)


def moved_module(module: str, distribution: str, old_name: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of the core whose content lives in a package of its own."""

    def __getattr__(name: str) -> Any:  # noqa: N807 - what a module calls it
        if name.startswith("__"):  # what the import system asks for
            raise AttributeError(f"module {old_name!r} has no attribute {name!r}")
        return getattr(import_moved(module, distribution, f"{old_name}.{name}"), name)

    return __getattr__


def import_moved(module: str, distribution: str, asked_for: str) -> Any:
    """Imports a module that a package brings.

    Raises:
        AttributeError: the package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # the package is there; what it imports is not
        raise AttributeError(f"{asked_for} comes with {distribution}: pip install {distribution}") from error
