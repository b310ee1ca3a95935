"""Histograms of columns: numbers in bins of equal width, words by frequency."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from estimator_inputs.statistics.record import ColumnStatistics

_BARS = " ▁▂▃▄▅▆▇█"


class Bar(NamedTuple):
    """A bar of a histogram: its name, and its share of all values."""

    name: str
    share: float


def histogram_of(column: ColumnStatistics, parts: int = 20) -> list[Bar]:
    """Returns the bars of a column. A column without values has no bars.

    A few different numbers have one bar each. Others fall into bins of equal width between the smallest and the
    largest. The most common words come first, and the rest is one bar.
    """
    if column.words:
        common = list(column.words.items())[: parts - 1]
        bars = [Bar(str(word), count / column.values) for word, count in common]
        rest = 1 - sum(bar.share for bar in bars)
        return [*bars, Bar("others", rest)] if rest > 1e-9 else bars
    numbers = column.numbers
    if numbers is None or column.minimum is None or column.maximum is None:
        return []
    if numbers.exact and column.different <= parts:
        known = sorted(numbers.counts.known.items())
        return [Bar(f"{number:.6g}", count / column.values) for number, count in known]
    low, high = column.minimum, column.maximum
    if not np.isfinite([low, high]).all():
        low, high = numbers.quantiles([0.01, 0.99])
        if not np.isfinite([low, high]).all():
            return []
    edges = np.linspace(low, high, parts + 1)
    below = numbers.below(edges.tolist())
    shares = np.diff([0.0, *below[1:-1], 1.0])
    names = [f"{a:.4g} to {b:.4g}" for a, b in itertools.pairwise(edges)]
    return [Bar(name, float(share)) for name, share in zip(names, shares, strict=True)]


def line_of(bars: Sequence[Bar]) -> str:
    """Returns a histogram in one line of text.

    Example:
        >>> line_of([Bar("a", 0.5), Bar("b", 0.25), Bar("c", 0.0)])
        '█▄ '
    """
    highest = max((bar.share for bar in bars), default=0) or 1
    return "".join(_BARS[int(np.ceil(8 * bar.share / highest))] for bar in bars)
