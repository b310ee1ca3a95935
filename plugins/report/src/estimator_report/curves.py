"""Computes curves from counts of scores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

Counts = Sequence[Sequence[float]]
Points = list[tuple[float, float]]


def roc(counts: Counts) -> Points:
    """Returns the false and true positive rate at each threshold, from the highest on.

    Args:
        counts: the numbers of examples with the answers no and yes that have a score in each bucket: [2, buckets].

    Example:
        >>> roc([[1, 0], [0, 1]])
        [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    """
    no, yes = (list(accumulate(reversed(line), initial=0.0)) for line in counts)
    return [(n / (no[-1] or 1.0), y / (yes[-1] or 1.0)) for n, y in zip(no, yes, strict=True)]


def precision_recall(counts: Counts) -> Points:
    """Returns recall and precision at each threshold with at least one positive prediction.

    Example:
        >>> precision_recall([[1, 0], [0, 1]])
        [(1.0, 1.0), (1.0, 0.5)]
    """
    no, yes = (list(accumulate(reversed(line))) for line in counts)
    return [(y / (yes[-1] or 1.0), y / (n + y)) for n, y in zip(no, yes, strict=True) if n + y]


def calibration(counts: Counts, bins: int = 10) -> Points:
    """Returns the predicted probability and the share of yes, in each of `bins` equal ranges that have examples.

    Example:
        >>> calibration([[0.0] * 4, [0.0, 0.0, 0.0, 3.0]], bins=4)
        [(0.875, 1.0)]
    """
    size = len(counts[0])
    points: Points = []
    for start in range(0, size, size // bins):
        places = range(start, start + size // bins)
        total = sum(counts[0][i] + counts[1][i] for i in places)
        if total:
            stated = sum((i + 0.5) / size * (counts[0][i] + counts[1][i]) for i in places)
            points.append((stated / total, sum(counts[1][i] for i in places) / total))
    return points


def area(points: Points) -> float:
    """Returns the area below a curve, by trapezia.

    Example:
        >>> area([(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
        1.0
    """
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
