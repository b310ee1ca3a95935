"""What is kept in memory of the results of a run: of each metric its extremes, its last value, and some points."""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_core.summaries import read_eval_metrics

#: More points of one line cannot be distinguished.
MOST_POINTS = 400
#: Lines that are parsed at once.
_LINES = 1024


@dataclass(frozen=True, kw_only=True)
class Digest:
    """A metric of a run.

    Args:
        least: the smallest value that is a number; None: there is none.
        most: the largest one.
        last: the value at the last step.
        steps: some steps, evenly chosen if there are more than can be seen; the first and the last are kept.
        values: the values there.
    """

    least: float | None
    most: float | None
    last: float
    steps: Sequence[float]
    values: Sequence[float]

    @property
    def points(self) -> list[tuple[float, float]]:
        """Steps and values, as a chart takes them."""
        return list(zip(self.steps, self.values, strict=True))


def digests(results: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[str, Digest]:
    """The digest of every metric that is a number, by name.

    Args:
        results: steps and their metrics, in the order of the steps. They are not kept.

    Example:
        >>> found = digests({10: {"loss": 2.0}, 20: {"loss": 0.5}, 30: {"loss": 1.0}}.items())["loss"]
        >>> found.least, found.most, found.last, len(found.points)
        (0.5, 2.0, 1.0, 3)
    """
    curves: dict[str, tuple[array[float], array[float]]] = {}
    for step, metrics in results:
        for name, value in metrics.items():
            if isinstance(value, int | float):
                steps, values = curves.setdefault(name, (array("d"), array("d")))
                steps.append(step)
                values.append(value)
    return {name: _digest(steps, values) for name, (steps, values) in curves.items()}


def file_digests(path: Path) -> dict[str, Digest]:
    """The digests of a file of results. A file of any length is read in little memory, if it is as one undisturbed run
    writes it. Any other file is left to `read_eval_metrics`, which knows torn lines and steps that come twice.
    """
    try:
        return digests(_plain(path))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return digests(read_eval_metrics(path.parent).items())


def _plain(path: Path) -> Iterable[tuple[int, Mapping[str, Any]]]:
    """Steps and metrics of a file whose steps ascend.

    Raises:
        ValueError: its steps do not ascend, or a line is torn. Lines of another form raise their own errors.
    """
    last = -1
    with path.open("rb") as file:
        while lines := list(itertools.islice(file, _LINES)):
            for record in json.loads(b"[" + b",".join(lines) + b"]"):
                step = record["global_step"]
                if step <= last:
                    raise ValueError(f"step {step} comes after step {last}")
                yield step, record["metrics"]
                last = step


def _digest(steps: Sequence[float], values: Sequence[float]) -> Digest:
    numbers = [value for value in values if value == value]
    last = len(values) - 1
    places: Sequence[int] = range(last + 1)
    if last >= MOST_POINTS:
        places = [round(place * last / (MOST_POINTS - 1)) for place in range(MOST_POINTS)]
    return Digest(
        least=min(numbers, default=None),
        most=max(numbers, default=None),
        last=values[-1],
        steps=array("d", [steps[place] for place in places]),
        values=array("d", [values[place] for place in places]),
    )
