"""What was learned from data, kept as a variable: so it is in every checkpoint and every export."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.checkpoint import load_variables
from estimator_core.errors import ArgumentError, CheckpointNotFoundError

#: The variable: the bytes of a JSON object.
VARIABLE = "data_contract"


def declare(known: Mapping[str, Any]) -> None:
    """Declares the variable in a model_fn; nothing where nothing was learned."""
    if known:
        written = np.frombuffer(json.dumps(known, sort_keys=True).encode(), np.uint8)
        ec.get_variable(VARIABLE, initializer=written, trainable=False)


def recall(memory: Path) -> dict[str, Any] | None:
    """What a checkpoint, or the newest one of a model_dir, holds; None: there is no checkpoint."""
    try:
        written = load_variables(memory, [VARIABLE])[VARIABLE]
    except CheckpointNotFoundError:
        return None
    except ArgumentError:  # it has no such variable
        return {}
    return json.loads(written.tobytes())
