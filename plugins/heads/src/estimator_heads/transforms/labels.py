"""Finds the labels that a transform applies to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError


def labels_of(batch: Mapping[str, np.ndarray[Any, Any]], name: str) -> np.ndarray[Any, Any]:
    """Returns the labels with this name.

    Raises:
        ArgumentError: there are no such labels.

    Example:
        >>> labels_of({"labels": np.array([1])}, "labels").tolist()
        [1]
    """
    if name not in batch:
        found = ", ".join(map(repr, sorted(map(str, batch))))
        wanted = "one array, such as frame[columns].to_numpy()" if name == "labels" else f"a dict with {name!r}"
        raise ArgumentError(f"The labels are a dict of {found}, but the head takes {wanted}.")
    return batch[name]
