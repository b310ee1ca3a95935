"""Stores the facts learned from data as a variable, so that every checkpoint and every export contains them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.checkpoint import load_variables
from estimator_core.errors import ArgumentError, CheckpointNotFoundError

#: The name of the variable, which contains the bytes of a JSON object.
VARIABLE = "data_contract"
#: The key of the digests of vocabularies among the facts.
VOCABULARIES = "vocabularies"


def digest(words: Iterable[Any]) -> str:
    """Returns a digest of words or numbers in their order.

    Example:
        >>> digest(["a", "b"]) == digest(("a", "b")), digest(["a", "b"]) == digest(["b", "a"])
        (True, False)
    """
    return hashlib.sha256(repr(tuple(words)).encode()).hexdigest()[:16]


def declare(known: Mapping[str, Any]) -> None:
    """Declares the variable in a model_fn. Does nothing if no facts were learned."""
    if known:
        written = np.frombuffer(json.dumps(known, sort_keys=True).encode(), np.uint8)
        ec.get_variable(VARIABLE, initializer=written, trainable=False)


def recall(memory: Path) -> dict[str, Any] | None:
    """Returns the facts in a checkpoint, or in the newest one of a model_dir. None: there is no checkpoint."""
    try:
        written = load_variables(memory, [VARIABLE])[VARIABLE]
    except CheckpointNotFoundError:
        return None
    except ArgumentError:  # it has no such variable
        return {}
    return json.loads(written.tobytes())
