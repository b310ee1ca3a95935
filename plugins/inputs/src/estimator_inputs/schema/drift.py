"""The drift between two data sets: Jensen-Shannon and L-infinity distances of every column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

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
        points = [shown_time(edge) if feature.kind == "time" else f"{edge:.6g}" for edge in edges]
        between = [f"{low} to {high}" for low, high in itertools.pairwise(points)]
        names = [f"up to {points[0]}", *between, f"above {points[-1]}"]
        other = shares_of(column.numbers, edges)
        return _compared(feature.name, seen.shares, other, names, seen.rows - seen.missing, column.values)
    return None


def shown_time(seconds: float) -> str:
    """Returns a point in time as text, from its seconds since 1970.

    Example:
        >>> shown_time(86400.0), shown_time(0.25)
        ('1970-01-02T00:00:00', '1970-01-01T00:00:00.250000')
        >>> shown_time(1704067200000.0)
        '1704067200000 seconds after 1970'
    """
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    except OverflowError:  # after the year 9999, such as milliseconds in place of seconds
        return f"{seconds:.15g} seconds after 1970"


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
        # The divergence of two samples of one source is about chi-squared, with one degree less than there are parts.
        chance_js=math.sqrt(_rarely_exceeded(max(filled - 1, 1)) * spread / (8 * math.log(2))),
        chance_l=3 * 0.5 * math.sqrt(spread),
    )


def _rarely_exceeded(degrees: int) -> float:
    """Returns the value that chi-squared exceeds with a chance of 1%, by the approximation of Wilson and Hilferty.

    With many parts, few values are in each, and divergences are larger. There it is twice the mean.

    Example:
        >>> round(_rarely_exceeded(1), 1), round(_rarely_exceeded(49), 1)
        (6.6, 98)
    """
    part = 2 / (9 * degrees)
    return max(2 * degrees, degrees * (1 - part + 2.326 * math.sqrt(part)) ** 3)


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
