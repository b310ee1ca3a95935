"""Several processes for estimator-core, over jax's coordination service.

Public names are imported when they are used, because every program imports the plugin at its start.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_cluster.connecting import connect as connect
    from estimator_cluster.coordinator import JaxCoordinator as JaxCoordinator

__version__ = "0.1.0"

_HOME = {"JaxCoordinator": "coordinator", "connect": "connecting"}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
