"""Numbers that JSON cannot represent, as the strings that the JSON form of protobuf uses."""

from __future__ import annotations

import math
from typing import Any


def name_of(value: float) -> str:
    """Returns the string for a non-finite number.

    Example:
        >>> name_of(float("nan")), name_of(float("-inf"))
        ('NaN', '-Infinity')
    """
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def named(value: Any) -> Any:
    """Returns a value of lists and objects in which strings replace the non-finite numbers.

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
    """Returns a value, or nested lists, in which numbers replace these strings again.

    Example:
        >>> unnamed([[0.5, "Infinity"], ["-Infinity", "a"]])
        [[0.5, inf], [-inf, 'a']]
    """
    if isinstance(value, list):
        items: list[Any] = value
        return [unnamed(item) for item in items]
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value
