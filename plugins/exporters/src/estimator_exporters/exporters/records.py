"""Small JSON files in which an exporter remembers across processes what it did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.storage import draft_of


def read_record(path: Path) -> dict[str, Any]:
    """The record; empty if there is no file or a damaged one."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_record(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a record atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        draft.write_text(json.dumps(dict(content)) + "\n")


def scalars(result: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of an evaluation's result."""
    return {
        str(name): float(value)
        for name, value in result.items()
        if isinstance(value, (int, float, np.number, np.ndarray)) and np.ndim(value) == 0
    }
