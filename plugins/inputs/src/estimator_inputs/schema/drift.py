"""The drift between two data sets: Jensen-Shannon and L-infinity distances of every column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimator_inputs.schema.bins import shares_of
from estimator_inputs.schema.contract import FeatureSchema, Schema
from estimator_inputs.statistics.record import ColumnStatistics, Statistics


@dataclass(frozen=True, kw_only=True)
class Distance:
    """The distance between the values of one column and those of the schema.

    Attributes:
        column: the name of the column.
        jensen_shannon: the distance, which is the square root of the divergence in bits. 0: identical. 1: nothing in
            common.
        l_infinity: the largest difference between the two shares of a value, or of a part of the numbers.
        of: the value or part with that difference.
        chance_js, chance_l: the distances that two samples of these sizes from one source rarely exceed.
    """

    column: str
    jensen_shannon: float
    l_infinity: float
    of: str
    chance_js: float
    chance_l: float


def distances(schema: Schema, statistics: Statistics) -> list[Distance]:
    """Returns the distances of all numbers and categories that both have. Text has no distance.

    Example:
        >>> from estimator_inputs import learn_schema
        >>> from estimator_inputs.statistics.gather import gather
        >>> schema = learn_schema({"size": ["S", "S", "M", "M"]})
        >>> (found,) = distances(schema, gather({"size": ["S", "S", "S", "M"]}))
        >>> found.l_infinity, found.of, round(found.jensen_shannon, 3)
        (0.25, "'M'", 0.221)
    """
    found: list[Distance] = []
    for name, feature in schema.features.items():
        column = statistics.columns.get(name)
        distance = None if column is None else _distance(feature, column)
        if distance is not None:
            found.append(distance)
    return found


def _distance(feature: FeatureSchema, column: ColumnStatistics) -> Distance | None:
    seen = feature.seen
    if feature.vocabulary and seen.counts:
        total = sum(seen.counts.values())
        counts = dict(column.words) if column.kind == "word" else _counts_of(column)
        if not column.values or counts is None:
            return None
        base = [seen.counts.get(str(word), 0) / total for word in feature.vocabulary]
        other = [counts.get(word, 0) / column.values for word in feature.vocabulary]
        names = [*map(repr, feature.vocabulary), "values that are not in the vocabulary"]
        return _compared(feature.name, _whole(base), _whole(other), names, total, column.values)
    if seen.edges and column.numbers is not None:
        edges = seen.edges
        names = [
            f"up to {edges[0]:.6g}",
            *(f"{low:.6g} to {high:.6g}" for low, high in itertools.pairwise(edges)),
            f"above {edges[-1]:.6g}",
        ]
        other = shares_of(column.numbers, edges)
        return _compared(feature.name, seen.shares, other, names, seen.rows - seen.missing, column.values)
    return None


def _whole(shares: list[float]) -> list[float]:
    """Returns the shares, followed by the rest up to 1."""
    return [*shares, max(0.0, 1 - sum(shares))]


def _counts_of(column: ColumnStatistics) -> dict[int, int] | None:
    if column.numbers is None or not column.numbers.exact:
        return None
    return {int(number): count for number, count in column.numbers.counts.known.items() if number == number // 1}


def _compared(
    name: str, base: Sequence[float], other: Sequence[float], names: Sequence[str], n: int, m: int
) -> Distance:
    p, q = np.array(base), np.array(other)
    apart = np.abs(p - q)
    worst = int(apart.argmax())
    spread = 1 / max(n, 1) + 1 / max(m, 1)
    filled = int(((p > 0) | (q > 0)).sum())
    return Distance(
        column=name,
        jensen_shannon=jensen_shannon(p, q),
        l_infinity=float(apart[worst]),
        of=names[worst],
        # the mean divergence of two samples is chi-squared with (parts - 1) degrees; twice the mean is rarely exceeded
        chance_js=math.sqrt(2 * max(filled - 1, 1) * spread / (8 * math.log(2))),
        chance_l=3 * 0.5 * math.sqrt(spread),
    )


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> float:
    """Returns the Jensen-Shannon distance, in bits.

    Args:
        p: float[n], the shares of one data set.
        q: float[n], the shares of the other data set.

    Example:
        >>> jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
        1.0

    Source: `scipy.spatial.distance.jensenshannon` with base 2.
    """
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(p > 0, p * np.log2(p / middle), 0).sum()
        right = np.where(q > 0, q * np.log2(q / middle), 0).sum()
    return math.sqrt(max(float(left + right) / 2, 0.0))
