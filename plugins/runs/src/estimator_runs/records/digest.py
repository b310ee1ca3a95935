"""The digest of the results of a run: for each metric its extremes, its last value, and some points."""

from __future__ import annotations

import itertools
import operator
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic_core import from_json

from estimator_core.summaries import read_eval_metrics

#: The maximum number of points of a line, because more cannot be distinguished.
MOST_POINTS = 400
#: The number of results that are added at once, and of bytes that are parsed at once, plus the rest of the last line.
_ROWS, _BYTES = 1024, 1 << 16


@dataclass(frozen=True, kw_only=True)
class Digest:
    """The digest of one metric of a run.

    Args:
        least: the smallest value that is a number; None: there is no such value.
        most: the largest value.
        last: the value at the last step.
        steps: the steps of the points, evenly chosen if there are too many. The first and the last are always included.
        values: the values at these steps.
    """

    least: float | None
    most: float | None
    last: float
    steps: Sequence[float]
    values: Sequence[float]

    @property
    def points(self) -> list[tuple[float, float]]:
        """The steps and values in the form of a chart."""
        return list(zip(self.steps, self.values, strict=True))


def digests(results: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[str, Digest]:
    """Returns the digest of every metric that is a number, by name.

    Args:
        results: the steps and their metrics, in the order of the steps. They are not kept in memory.

    Example:
        >>> found = digests({10: {"loss": 2.0}, 20: {"loss": 0.5}, 30: {"loss": 1.0}}.items())["loss"]
        >>> found.least, found.most, found.last, len(found.points)
        (0.5, 2.0, 1.0, 3)
    """
    curves = _Curves()
    remaining = iter(results)
    while rows := list(itertools.islice(remaining, _ROWS)):
        curves.add([step for step, _ in rows], [metrics for _, metrics in rows])
    return curves.digests()


def file_digests(path: Path) -> dict[str, Digest]:
    """Returns the digests of a file of results.

    A file of one undisturbed run is read in little memory, whatever its length. For any other file, `read_eval_metrics`
    handles torn lines and repeated steps.
    """
    try:
        return _plain(path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return digests(read_eval_metrics(path.parent).items())


def _plain(path: Path) -> dict[str, Digest]:
    """Returns the digests of a file whose steps ascend.

    Raises:
        ValueError: the steps do not ascend, or a line is torn. Lines of another form raise their own errors.
    """
    curves, last = _Curves(), -1
    with path.open("rb") as file:
        while lines := (file.read(_BYTES) + file.readline()).removesuffix(b"\n"):
            records = from_json(b"[" + lines.replace(b"\n", b",") + b"]", cache_strings="keys")
            steps = [record["global_step"] for record in records]
            if any(map(operator.le, steps, [last, *steps])):
                raise ValueError(f"a step after step {last} does not come after the one before it")
            curves.add(steps, [record["metrics"] for record in records])
            last = steps[-1]
    return curves.digests()


class _Curves:
    """The steps and values of every metric, collected block by block."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[array[float], array[float]]] = {}

    def add(self, steps: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds the metrics of some steps."""
        for name in dict.fromkeys(itertools.chain.from_iterable(rows)):
            at, column = steps, list[Any](metrics.get(name) for metrics in rows)
            if not {float, int}.issuperset(map(type, column)):
                told = [isinstance(value, int | float) for value in column]
                at, column = list(itertools.compress(steps, told)), list(itertools.compress(column, told))
            if column:
                known = self._found.setdefault(name, (array("d"), array("d")))
                known[0].extend(at)
                known[1].extend(column)

    def digests(self) -> dict[str, Digest]:
        """Returns the digests of the metrics."""
        return {name: _digest(steps, values) for name, (steps, values) in self._found.items()}


def _digest(steps: array[float], values: array[float]) -> Digest:
    every = np.frombuffer(values)
    numbers = every[~np.isnan(every)]
    last = len(values) - 1
    places: Sequence[int] = range(last + 1)
    if last >= MOST_POINTS:
        places = [round(place * last / (MOST_POINTS - 1)) for place in range(MOST_POINTS)]
    return Digest(
        least=float(numbers.min()) if numbers.size else None,
        most=float(numbers.max()) if numbers.size else None,
        last=values[-1],
        steps=array("d", [steps[place] for place in places]),
        values=array("d", [values[place] for place in places]),
    )
