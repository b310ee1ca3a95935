"""Warm start for estimator-core: initial values from checkpoints, by settings or inside model_fn.

Public names are imported when they are used, because every program imports the plugin at start-up.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "AssignmentMap": "assignments",
    "CheckpointReader": "checkpoint_values",
    "LoadReport": "load_report",
    "LoadedVariable": "load_report",
    "TensorFlowCheckpoint": "tensorflow",
    "VocabInfo": "vocabulary",
    "WarmStartSettings": "settings",
    "get_assignment_map_from_checkpoint": "in_model_fn",
    "init_from_checkpoint": "in_model_fn",
    "read_tensorflow": "tensorflow",
    "tensorflow_prefix": "tensorflow",
}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
