"""The vocabulary of a feature, limited by frequency and size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from estimator_canned_tabular.host.values import is_missing
from estimator_core.errors import ArgumentError, check_count


def frequent_values(
    batches: Iterable[Any], *, max_size: int | None = None, min_count: int = 1
) -> tuple[str, ...] | tuple[int, ...]:
    """Returns the values of a feature that are frequent enough, most frequent first. Ties are in ascending order.

    It needs one pass, and memory for each different value. `categorical_column_with_vocabulary_list` accepts the
    result.

    Args:
        batches: arrays (or lists) of strings, bytes or integers, of any shape; `""`, None, NaN and -1 are not values.
        max_size: the maximum number of values; None: all.
        min_count: the number of times that a value must occur.

    Raises:
        ArgumentError: a size or count is below 1, numbers are not integers, or no value is frequent enough.

    Example:
        >>> frequent_values([["a", "b", "a"], ["c", "b", "a", ""]], max_size=2)
        ('a', 'b')
    """
    for name, value in (("max_size", max_size), ("min_count", min_count)):
        if value is not None:
            check_count(name, value)
    counts: Counter[Any] = Counter()
    for batch in batches:
        counts.update(_values(batch))
    if len({type(value) for value in counts}) > 1:
        raise ArgumentError(
            "The feature holds both numbers and strings: all values of a vocabulary must have one type."
        )
    often = sorted((-count, value) for value, count in counts.items() if count >= min_count)
    if not often:
        raise ArgumentError(f"No value occurs {min_count} times or more, among {len(counts)} different values.")
    return tuple(value for _, value in often[:max_size])


def _values(batch: Any) -> list[Any]:
    array = np.asarray(batch)
    if array.size and array.dtype.kind == "f":
        raise ArgumentError(f"A vocabulary holds strings or integers, given: {array.dtype}.")
    if array.dtype.kind in "iu":
        return array[array != -1].tolist()
    texts = (value.decode() if isinstance(value, bytes) else value for value in array.ravel().tolist())
    return [text for text in texts if not is_missing(text) and text != ""]
