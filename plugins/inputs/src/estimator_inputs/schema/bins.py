"""Divides numbers into parts. The shares of the parts are the basis for comparing two data sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from estimator_inputs.statistics.numbers import Numbers

#: The number of parts. Each has about the same number of values.
_PARTS = 20


def edges_of(numbers: Numbers, *, whole: bool) -> tuple[float, ...]:
    """Returns edges that divide numbers into parts of about equal size. There are fewer if many values are the same.

    Args:
        numbers: the numbers of a column.
        whole: whether all numbers are integers. The edges are then integers too.
    """
    quantiles = np.array(numbers.quantiles(np.linspace(0, 1, _PARTS + 1).tolist()))
    finite = quantiles[np.isfinite(quantiles)]
    return tuple(float(edge) for edge in np.unique(np.floor(finite) if whole else finite))


def shares_of(numbers: Numbers, edges: Sequence[float]) -> tuple[float, ...]:
    """Returns the shares of values between edges: float[len(edges) + 1].

    They are those up to the first edge, between two (with the upper one), and above the last.

    Example:
        >>> import pyarrow as pa
        >>> numbers = Numbers()
        >>> numbers.add(pa.array([1, 2, 2, 5]))
        >>> shares_of(numbers, [1.0, 2.0])
        (0.25, 0.5, 0.25)
    """
    if not edges:
        return ()
    below = [0.0, *numbers.below(edges), 1.0]
    return tuple(np.round(np.diff(below), 9).tolist())
