"""JSON files by which the processes of a sweep, a cross-validation or a population know what was decided and done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_core.storage import draft_of


def write_json(path: Path, value: Any) -> None:
    """Writes JSON atomically, so that no process reads a part of it.

    Raises:
        ArgumentError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(path) as draft:
            draft.write_text(json.dumps(value))
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}.") from error
