"""What is kept in memory of the results of a run: of each metric its extremes, its last value, and some points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: More points of one line cannot be distinguished.
MOST_POINTS = 400


@dataclass(frozen=True, kw_only=True)
class Digest:
    """A metric of a run.

    Args:
        least: the smallest value that is a number; None: there is none.
        most: the largest one.
        last: the value at the last step.
        points: steps and values, evenly chosen if there are more than can be seen; the first and the last are kept.
    """

    least: float | None
    most: float | None
    last: float
    points: Sequence[tuple[float, float]]


def digests(results: Mapping[int, Mapping[str, Any]]) -> dict[str, Digest]:
    """The digest of every metric that is a number, by name.

    Args:
        results: metrics by step, in the order of the steps.

    Example:
        >>> found = digests({10: {"loss": 2.0}, 20: {"loss": 0.5}, 30: {"loss": 1.0}})["loss"]
        >>> found.least, found.most, found.last, len(found.points)
        (0.5, 2.0, 1.0, 3)
    """
    curves: dict[str, tuple[list[int], list[float]]] = {}
    for step, metrics in results.items():
        for name, value in metrics.items():
            if isinstance(value, int | float):
                steps, values = curves.setdefault(name, ([], []))
                steps.append(step)
                values.append(float(value))
    return {name: _digest(steps, values) for name, (steps, values) in curves.items()}


def _digest(steps: Sequence[int], values: Sequence[float]) -> Digest:
    numbers = [value for value in values if value == value]
    last = len(values) - 1
    places = range(last + 1)
    if last >= MOST_POINTS:
        places = [round(place * last / (MOST_POINTS - 1)) for place in range(MOST_POINTS)]
    return Digest(
        least=min(numbers, default=None),
        most=max(numbers, default=None),
        last=values[-1],
        points=[(float(steps[place]), values[place]) for place in places],
    )
