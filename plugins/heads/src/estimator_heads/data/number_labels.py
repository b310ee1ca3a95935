"""Labels that are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from estimator_heads.data.rule import Array, Fault, first_no_number, not_finite, shown, surely_finite
from estimator_heads.data.texts import is_missing

_FILL = "Correct the label, or leave the row out."
_TEXT = "Labels of this head are numbers: convert them, or use a classifier for classes that have names."


@dataclass(frozen=True, kw_only=True)
class NumberLabels:
    """Labels that are finite numbers, optionally within limits.

    Attributes:
        low, high: the limits, which are allowed values.
        learns: whether the rule learns from the data. It does not.

    Example:
        >>> NumberLabels(low=0).fault(np.array([1.0, -2.0]), None).row
        1
    """

    low: float = -np.inf
    high: float = np.inf
    learns: bool = False

    def part(self, array: Array) -> Array:
        """Returns nothing, because nothing is learned."""
        return array[:0]

    def learn(self, parts: Sequence[Array]) -> Any:
        """Returns nothing, because nothing is learned."""
        return None

    def passes(self, array: Array, known: Any) -> bool:
        """Returns whether all labels are finite floats within the limits."""
        if array.dtype.kind != "f" or not array.size or not surely_finite(array):
            return False
        return self.low <= array.item(array.argmin()) and array.item(array.argmax()) <= self.high

    def fault(self, array: Array, known: Any) -> Fault | None:
        """Returns the first label that is not a finite number within the limits, or None."""
        if array.dtype.kind == "O":
            found = first_no_number(array)
            if found is not None:
                return _of_object(*found)
            with np.errstate(over="ignore"):
                array = array.astype(np.float32)  # like `convert`
        kind = array.dtype.kind
        if kind not in "fiub":
            return Fault(row=0, value=shown(_first(array)), problem=f"is {_kind(array)}, not a number", cure=_TEXT)
        if kind == "f" and (fault := not_finite(array)) is not None:
            return replace(fault, cure=_FILL)
        if self.low == -np.inf and self.high == np.inf:
            return None
        wrong = (array < self.low) | (array > self.high)
        if not wrong.any():
            return None
        limits = f"at least {self.low:g}" if self.high == np.inf else f"from {self.low:g} to {self.high:g}"
        row = int(np.nonzero(wrong)[0][0])
        return Fault(row=row, value=array[wrong][0].item(), problem=f"must be {limits}", cure=_FILL)

    def convert(self, array: Array, known: Any) -> Array:
        """Returns numbers unchanged, booleans as 0 and 1, and objects as numbers."""
        return array.astype(np.float32) if array.dtype.kind in "bO" else array


def _of_object(row: int, value: object) -> Fault:
    if is_missing(value):
        return Fault(row=row, value=value, problem="is missing", cure=_FILL)
    return Fault(row=row, value=shown(value), problem=f"is a {type(value).__name__}, not a number", cure=_TEXT)


def _first(array: Array) -> object:
    return array.reshape(-1)[0] if array.size else None


def _kind(array: Array) -> str:
    return {"M": "a date", "m": "a time span"}.get(array.dtype.kind, f"a {type(_first(array)).__name__}")
