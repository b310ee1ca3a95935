"""Sends small features of a batch together: the program receives one matrix instead of many arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from estimator_core._types import PyTree

#: Each array costs the host one to three microseconds per dispatch. Copying a column of a larger array costs more.
_SMALL_BYTES = 4096
#: With fewer columns, gathering is not faster.
_LEAST = 4


class Gathered(NamedTuple):
    """Features of one shape that share arrays.

    Attributes:
        matrices: [rows, features, ...] by the names of the features. XLA reads a matrix directly if model_fn stacks or
            concatenates its features in this order.
        rest: the other features.
    """

    matrices: dict[tuple[str, ...], Any]
    rest: dict[str, PyTree]


def gathering(features: PyTree) -> Callable[[PyTree], PyTree] | None:
    """Returns a function that gathers the small features of batches like this one on the host; None if this is not
    faster.

    Example:
        >>> batch = {name: np.arange(2) for name in "abcd"} | {"image": np.zeros((2, 8, 8))}
        >>> gather = gathering(batch)
        >>> found = gather(batch)
        >>> {names: matrix.tolist() for names, matrix in found.matrices.items()}, list(found.rest)
        ({('a', 'b', 'c', 'd'): [[0, 0, 0, 0], [1, 1, 1, 1]]}, ['image'])
        >>> apart(found)["d"].tolist()
        [0, 1]
    """
    if type(features) is not dict:
        return None
    parts: dict[str, Any] = features
    alike: dict[Any, list[str]] = {}
    for name, value in sorted(parts.items()):
        if type(value) is np.ndarray and value.ndim and 0 < value.nbytes <= _SMALL_BYTES:
            alike.setdefault((value.dtype, value.shape[1:]), []).append(name)
    groups = [tuple(names) for names in alike.values() if len(names) >= _LEAST]
    together = {name for names in groups for name in names}
    rest = [name for name in parts if name not in together]

    def gather(features: PyTree) -> PyTree:
        matrices: dict[tuple[str, ...], Any] = {}
        for names in groups:
            values = [features[name] for name in names]
            first = values[0]
            # A fresh array in row order. jax may read it later, and would copy an array in another order.
            if first.ndim == 1:
                matrices[names] = np.array(values).T.copy()
            elif len({value.shape for value in values}) == 1:
                matrices[names] = np.concatenate(values, axis=1).reshape(len(first), len(names), *first.shape[1:])
            else:  # if shapes may vary, features that were alike in the first batch may differ in this one
                return features
        return Gathered(matrices, {name: features[name] for name in rest})

    return gather if groups else None


def apart(features: PyTree) -> PyTree:
    """Restores the features by name inside a program."""
    if not isinstance(features, Gathered):
        return features
    parts = dict(features.rest)
    for names, matrix in features.matrices.items():
        rows, count, *trailing = matrix.shape
        flat = matrix.reshape(rows, -1)  # XLA merges slices of a matrix, but copies slices of an array with three axes
        width = flat.shape[1] // count
        for place, name in enumerate(names):
            parts[name] = flat[:, place * width : (place + 1) * width].reshape(rows, *trailing)
    return dict(sorted(parts.items()))  # in the order in which jax flattens a dict
