"""Single columns of a batch travel together: the program takes one matrix in place of many small arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from estimator_core._types import PyTree

#: Each array costs the host one to three microseconds a dispatch, a column of a larger one more than that to copy.
_SMALL_BYTES = 4096
#: Fewer columns gain nothing.
_LEAST = 4


class Gathered(NamedTuple):
    """Features whose columns share arrays.

    Attributes:
        matrices: [rows, columns] by the names of the columns: XLA reads a batch that model_fn stacks as it is.
        rest: the other features.
    """

    matrices: dict[tuple[str, ...], Any]
    rest: dict[str, PyTree]


def gathering(features: PyTree) -> Callable[[PyTree], PyTree] | None:
    """A function that gathers the columns of batches like this one, on the host; None: that gains nothing.

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
    by_dtype: dict[Any, list[str]] = {}
    for name, value in sorted(parts.items()):
        if type(value) is np.ndarray and value.ndim == 1 and value.nbytes <= _SMALL_BYTES:
            by_dtype.setdefault(value.dtype, []).append(name)
    groups = [tuple(names) for names in by_dtype.values() if len(names) >= _LEAST]
    together = {name for names in groups for name in names}
    rest = [name for name in parts if name not in together]

    def gather(features: PyTree) -> PyTree:
        # A fresh array in the order of rows: jax may read it later, and would copy one in another order.
        matrices = {names: np.array([features[name] for name in names]).T.copy() for names in groups}
        return Gathered(matrices, {name: features[name] for name in rest})

    return gather if groups else None


def apart(features: PyTree) -> PyTree:
    """Within a program: the features by name, as they were."""
    if not isinstance(features, Gathered):
        return features
    columns = {name: m[:, place] for names, m in features.matrices.items() for place, name in enumerate(names)}
    return dict(sorted({**features.rest, **columns}.items()))  # as jax orders them
