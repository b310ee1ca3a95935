"""Labels as texts, which are compared with the names of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def texts_of(array: Array) -> Array:
    """Returns an array of str of the same shape. Integers have no fraction, and missing values are "".

    Example:
        >>> texts_of(np.array([1.0, 2.0])).tolist(), texts_of(np.array([b"a", None], object)).tolist()
        (['1', '2'], ['a', ''])
    """
    if array.dtype.kind == "U":
        return array
    flat = [_text(value) for value in array.reshape(-1).tolist()]
    return np.array(flat, np.str_).reshape(array.shape)


def is_missing(value: Any) -> bool:
    """Returns whether a value is missing: None, NaN, NA and NaT of pandas, or the empty text.

    Example:
        >>> [is_missing(value) for value in (None, float("nan"), "", 0, "a")]
        [True, True, True, False, False]
    """
    if value is None or (isinstance(value, (str, bytes)) and not value):
        return True
    return type(value).__name__ in ("NAType", "NaTType") or bool(np.isscalar(value) and value != value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if is_missing(value):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
