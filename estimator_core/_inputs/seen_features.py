"""Records the features that training sees before host transforms. Checkpoints store the record, for exports."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._files import draft_of

FILE = "seen_features.json"


@dataclass
class SeenFeatures:
    """Records the largest number of values per example, by feature.

    It runs before the host transforms of a training run.

    Attributes:
        files: the files of the transform. It has none.
        places: the largest number of values of an example, by feature.
        dtypes: "string" or the name of a numpy dtype, by feature.

    Example:
        >>> seen = SeenFeatures()
        >>> _ = seen.apply({"tags": np.array([["a", "b"], ["c", ""]]), "age": np.zeros(2, np.float32)})
        >>> seen.places
        {'tags': 2, 'age': 1}
    """

    name = "seen_features"
    version = 1
    files: Mapping[str, Path] = field(default_factory=lambda: {})
    places: dict[str, int] = field(default_factory=lambda: {})
    dtypes: dict[str, str] = field(default_factory=lambda: {})
    _kept: tuple[dict[str, int], dict[str, str]] = field(default_factory=lambda: ({}, {}), init=False)

    def config(self) -> dict[str, Any]:
        """Returns no arguments, because it is not part of an export."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Returns the batch unchanged."""
        for name, array in batch.items():
            self.places[name] = max(self.places.get(name, 0), _places(array))
            self.dtypes[name] = _dtype(array, self.dtypes.get(name))
        return batch

    def save(self, model_dir: Path) -> None:
        """Merges the record with that of earlier training runs of this model, and saves it, at any time."""
        places, dtypes = seen = dict(self.places), dict(self.dtypes)  # another thread may be adding to them
        if seen == self._kept:
            return
        found = SeenFeatures(places=places, dtypes=dtypes).with_earlier(model_dir)
        with draft_of(model_dir / FILE) as draft:
            draft.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        self._kept = seen

    def with_earlier(self, model_dir: Path) -> dict[str, dict[str, Any]]:
        """Returns the merged record of this and earlier training runs of this model, in the form of `seen_features`."""
        before = seen_features(model_dir)
        earlier = {name: facts["places"] for name, facts in before.items()}
        return before | {
            name: {"places": max(self.places[name], earlier.get(name, 0)), "dtype": dtype}
            for name, dtype in self.dtypes.items()
        }


@contextlib.contextmanager
def noting(model_dir: Path | None) -> Generator[tuple[SeenFeatures]]:
    """Yields transforms that run before the host transforms of a training run.

    Their record is saved at the end if there is a directory.
    """
    seen = SeenFeatures()
    try:
        yield (seen,)
    finally:
        if model_dir is not None:
            seen.save(model_dir)


def seen_features(model_dir: Path) -> dict[str, dict[str, Any]]:
    """`{"places": ..., "dtype": ...}` by feature; empty if no training run has recorded features."""
    try:
        return json.loads((model_dir / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _places(array: np.ndarray) -> int:
    # A text counts as one value. Calling np.size for each would cost more than a step.
    if array.dtype == object and array.ndim == 1 and not set(map(type, array.tolist())) <= {bytes, str, type(None)}:
        return max((np.size(row) for row in array.tolist() if row is not None), default=1)
    return prod(array.shape[1:])


def _dtype(array: np.ndarray, before: str | None) -> str:
    """Returns the dtype of the values. Objects may be numbers or lists of them. Objects without values are ignored."""
    if array.dtype != object:
        return "string" if array.dtype.kind in "SU" else array.dtype.name
    if before == "string":
        return before
    try:
        rows = [np.asarray(row) for row in array.ravel().tolist() if row is not None]
    except ValueError:  # lists of lists of different lengths
        return "string"
    found = {row.dtype for row in rows if row.size}
    if not found:
        return before or "string"
    if not all(dtype.kind in "biuf" for dtype in found):
        return "string"
    # A batch of only integers does not contradict the fractions of an earlier batch.
    return np.result_type(*found, *([np.dtype(before)] if before else [])).name
