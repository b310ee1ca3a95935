"""Confidence intervals of any metric that merges: the delete-a-group jackknife."""

from __future__ import annotations

import math
from collections.abc import Sequence


def interval(value: float, without: Sequence[float], level: float) -> tuple[float, float] | None:
    """Returns the interval around a metric.

    Every example belongs to a random group. theta_g is the metric of all examples outside of group g. The variance is
    (G - 1) / G * sum((theta_g - mean)**2). The interval is symmetric, with Student's t of G - 1 degrees of freedom.
    With as many groups as examples this is the classical jackknife.

    Args:
        value: the metric of all examples.
        without: the metric without each group that has examples.
        level: the probability that the interval contains the true value, for example 0.95.

    Returns:
        The ends, or None with fewer than two groups, or with a value that is not finite.

    Source: J. Shao and D. Tu, The Jackknife and Bootstrap, 1995, section 5.1.

    Example:
        >>> low, high = interval(0.5, [0.4, 0.6, 0.5, 0.5], 0.95)
        >>> round(low, 3), round(high, 3)
        (0.11, 0.89)
    """
    groups = len(without)
    if groups < 2 or not all(map(math.isfinite, (value, *without))):
        return None
    mean = math.fsum(without) / groups
    deviation = math.sqrt((groups - 1) / groups * math.fsum((each - mean) ** 2 for each in without))
    reach = deviation * _students_t(groups - 1, (1 + level) / 2)
    return value - reach, value + reach


def _students_t(degrees: int, probability: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))
