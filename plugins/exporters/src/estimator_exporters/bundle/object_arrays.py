"""Arrays of Python objects, which contain texts as bytes: how they are made, and how their texts are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def objects(values: Sequence[Any]) -> np.ndarray:
    """Returns an array with one axis that contains any values, also lists, which numpy would turn into axes.

    Example:
        >>> objects([[1], [2]]).shape
        (2,)
    """
    found = np.empty(len(values), object)
    found[:] = values
    return found


def decoded(value: Any) -> Any:
    """Returns a value, or nested lists, in which texts replace bytes. Other bytes than UTF-8 become U+FFFD.

    Example:
        >>> decoded([[b"a", 1], ["b", None]])
        [['a', 1], ['b', None]]
    """
    if isinstance(value, list):
        items: list[Any] = value
        return [decoded(item) for item in items]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
