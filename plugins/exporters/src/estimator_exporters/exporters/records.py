"""Small JSON files in which an exporter remembers across processes what it did."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def read_record(path: Path) -> dict[str, Any]:
    """The record; empty if there is no file or a damaged one."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_record(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a record atomically. Drafts that killed writers of this machine have left are removed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _clean(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(dict(content)) + "\n")
    temporary.replace(path)


def _clean(path: Path) -> None:
    for draft in path.parent.glob(f".{glob.escape(path.name)}.*"):
        owner = draft.name.rpartition(".")[2]
        if owner.isdecimal() and not _alive(int(owner)):
            draft.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def scalars(result: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of an evaluation's result."""
    return {
        str(name): float(value)
        for name, value in result.items()
        if isinstance(value, (int, float, np.number, np.ndarray)) and np.ndim(value) == 0
    }
