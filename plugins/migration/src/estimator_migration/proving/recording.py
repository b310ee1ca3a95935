"""Reads the quantities of the TensorFlow program that `tf_side.py` wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_migration.proving.computed import Computed, Evaluated, joined

_FILES = ("record.json", "arrays.npz")


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The other side of a proof.

    Args:
        computed: the quantities that the other side computed.
        train_batches: the training batches: dicts with "features" and perhaps "labels".
        eval_batches: the evaluation batches.
        made_by: the versions of the other side.
    """

    computed: Computed
    train_batches: Sequence[Mapping[str, Any]]
    eval_batches: Sequence[Mapping[str, Any]]
    made_by: str


def read_recording(folder: str | os.PathLike[str]) -> Recording:
    """Reads a recording of `estimator migrate prove --record FOLDER`.

    Raises:
        ArgumentError: the folder holds no recording.
    """
    place = Path(folder)
    if not all((place / name).is_file() for name in _FILES):
        raise ArgumentError(f"{place} holds no recording: `estimator migrate prove --record {place}` writes one.")
    record = json.loads((place / _FILES[0]).read_text(encoding="utf-8"))
    with np.load(place / _FILES[1]) as arrays:
        values = {name: _with_objects(arrays[name]) for name in arrays.files}

    def tree(name: str) -> Any:
        return _tree(record[name], values)

    return Recording(
        computed=Computed(
            losses=[float(loss) for loss in tree("losses")],
            gradients=(tree("gradients"), *(tree("later_gradients") if "later_gradients" in record else ())),
            weights=tree("weights"),
            start=_evaluated(tree("start")),
            end=_evaluated(tree("end")),
            trainable=frozenset(record["trainable"]),
            random=record["random"],
        ),
        train_batches=tree("train_batches"),
        eval_batches=tree("eval_batches"),
        made_by=f"TensorFlow {record['tensorflow']}, Python {record['python']}",
    )


def _evaluated(found: Mapping[str, Any]) -> Evaluated:
    return Evaluated(metrics=found["metrics"], predictions=joined(found["predictions"]))


def _tree(kept: Any, values: Mapping[str, np.ndarray]) -> Any:
    if kept is None:
        return None
    ((kind, inside),) = kept.items()
    if kind == "array":
        return values[inside]
    if kind == "dict":
        return {key: _tree(value, values) for key, value in inside}
    return tuple(_tree(value, values) for value in inside)


def _with_objects(array: np.ndarray) -> np.ndarray:
    """Returns strings as inputs return them, as bytes objects."""
    return array.astype(object) if array.dtype.kind == "S" else array
