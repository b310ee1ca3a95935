"""Small JSON files in which an exporter records its work for later processes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.storage import draft_of


def read_record(path: Path) -> dict[str, Any]:
    """Returns the record. It is empty if the file is missing or damaged."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def step_of(export: Path) -> int | None:
    """Returns the step of an export, or None if its manifest has no step."""
    step = read_record(export / "manifest.json").get("global_step")
    return step if isinstance(step, int) else None


def write_record(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a record atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        draft.write_text(json.dumps(dict(content)) + "\n")


def plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the result of an evaluation as JSON: the same for a computed, recorded or remembered result."""
    return {str(name): _plain(value) for name, value in result.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if value is None or isinstance(value, (str, list)):  # a recorded array is a list
        return value
    if isinstance(value, (int, float)):
        return float(value)
    array = np.asarray(value)
    return array.tolist() if array.ndim or array.dtype.kind in "USO" else float(array)
