"""Numbers that JSON does not have, as the strings of protobuf's JSON."""

from __future__ import annotations

import math
from typing import Any


def name_of(value: float) -> str:
    """The string that stands for a number that is not finite.

    Example:
        >>> name_of(float("nan")), name_of(float("-inf"))
        ('NaN', '-Infinity')
    """
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def named(value: Any) -> Any:
    """A value with lists and objects, in which strings stand for the numbers that are not finite.

    Example:
        >>> named({"scores": [0.5, float("inf")]})
        {'scores': [0.5, 'Infinity']}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else name_of(value)
    if isinstance(value, list):
        return [named(one) for one in value]
    return {name: named(one) for name, one in value.items()} if isinstance(value, dict) else value


def unnamed(value: Any) -> Any:
    """A value, or a list of lists, in which these strings are the numbers again.

    Example:
        >>> unnamed([[0.5, "Infinity"], ["-Infinity", "a"]])
        [[0.5, inf], [-inf, 'a']]
    """
    if isinstance(value, list):
        items: list[Any] = value
        return [unnamed(item) for item in items]
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value
