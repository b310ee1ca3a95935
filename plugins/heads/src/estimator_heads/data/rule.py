"""`DataRule`: the requirements of a model on one array of its data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A value that violates a rule.

    Attributes:
        row: the row of the array, from 0. -1: the array as a whole.
        value: the value itself.
        problem: the fault, as the end of a sentence that begins with the array.
        cure: the remedy.
    """

    row: int
    value: object
    problem: str
    cure: str


class DataRule(Protocol):
    """The requirements of a model on one array: a feature, or labels.

    `known` is the earlier result of `learn`, in this process or in the process that wrote a checkpoint. It is None if
    nothing was learned.
    """

    @property
    def learns(self) -> bool:
        """Whether something must be learned from the training data."""
        ...

    def part(self, array: Array) -> Array:
        """Extracts what `learn` needs from a part of the data."""
        ...

    def learn(self, parts: Sequence[Array]) -> Any:
        """Learns from all parts. Returns JSON values, or None if nothing must be stored.

        Raises:
            InputError: the parts cannot be used. The message continues a sentence that begins with the name of the
                array.
        """
        ...

    def passes(self, array: Array, known: Any) -> bool:
        """Returns whether the model can use the array unchanged, by a check of about a microsecond.

        False means unknown.
        """
        ...

    def fault(self, array: Array, known: Any) -> Fault | None:
        """Returns the first value that violates the rule, or None."""
        ...

    def convert(self, array: Array, known: Any) -> Array:
        """Returns the array for the model, or the same array if it need not change."""
        ...


def shown(value: Any) -> object:
    """Returns a value for messages: bytes as text, and numpy scalars as Python scalars.

    Example:
        >>> shown(np.str_("a")), shown(b"a")
        ('a', 'a')
    """
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def first_no_number(array: Array) -> tuple[int, Any] | None:
    """Returns the row and the value of the first object of an array that is not a number, or None.

    Example:
        >>> first_no_number(np.array([1, None, "a"], object)), first_no_number(np.array([1, 2.5], object))
        ((1, None), None)
    """
    for place, value in enumerate(array.reshape(-1).tolist()):
        if not isinstance(value, (int, float, np.number, np.bool_)) and type(value).__module__ != "decimal":
            return place * len(array) // array.size, value
    return None


def surely_finite(array: Array) -> bool:
    """Returns whether a product proves that all floats of an array are finite.

    False: some are not finite, or are large.

    Example:
        >>> surely_finite(np.ones(3)), surely_finite(np.array([1.0, np.nan])), surely_finite(np.array([1e200]))
        (True, False, False)
    """
    return math.isfinite(np.vdot(array, array))  # an overflow causes no warning


def not_finite(array: Array) -> Fault | None:
    """Returns the first NaN or infinity of an array of floats, or None.

    Example:
        >>> not_finite(np.array([1.0, np.nan])).row
        1
    """
    if surely_finite(array) or np.isfinite(array).all():
        return None
    flat = array.reshape(-1)
    row = int(np.flatnonzero(~np.isfinite(flat))[0]) * len(array) // array.size
    values = array[row].reshape(-1)
    value = values[~np.isfinite(values)][0]
    return Fault(row=row, value=float(value), problem="is not finite", cure="")
