"""The rule of a numeric column for its feature, and the replacement of missing numbers that it learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core.errors import InputError
from estimator_heads import Fault, not_finite, shown, surely_finite

Array = np.ndarray[Any, Any]

#: The replacements that are learned. A number is the other possibility.
LEARNED = ("mean", "median", "indicator")
_TIMES = {
    "date": "a date",
    "datetime": "a date",
    "datetime64": "a date",
    "timedelta": "a time span",
    "timedelta64": "a time span",
    "Timestamp": "a date",
    "Timedelta": "a time span",
}
_MISSING = "Fill it, or give the column missing=: a number, 'mean', 'median' or 'indicator'."


@dataclass(frozen=True, kw_only=True)
class NumberRule:
    """Accepts finite numbers, and also NaN and None if the column has a replacement for missing numbers.

    Attributes:
        key: the name of the feature.
        width: the number of values of one example.
        missing: see `numeric_column`.
        whole: whether a column of categories reads the feature, too. That column accepts integers and no floats.

    Example:
        >>> rule = NumberRule(key="age", missing="mean")
        >>> ages = np.array([20.0, np.nan, 40.0])
        >>> rule.learn([rule.part(ages)]), NumberRule(key="age").fault(ages, None).row
        ([30.0], 1)
    """

    key: str
    width: int = 1
    missing: str | float | None = None
    whole: bool = False

    @property
    def learns(self) -> bool:
        """Whether the replacement of missing numbers is learned from the training data."""
        return self.missing in LEARNED

    def part(self, array: Array) -> Array:
        """Returns the numbers, float32[examples, width]."""
        if array.dtype.kind not in "fiubO" or (array.dtype.kind == "O" and _no_number(array) is not None):
            return np.zeros((0, self.width), np.float32)  # `fault` reports the reason
        with np.errstate(over="ignore"):  # a number that is infinite in float32 is refused later
            return _numbers(array).astype(np.float32).reshape(len(array), -1)

    def learn(self, parts: Sequence[Array]) -> list[float]:
        """Returns the replacement of missing numbers, one value for each place.

        Raises:
            InputError: a place never has a number.
        """
        found = np.concatenate([np.zeros((0, self.width), np.float32), *parts])
        of = np.median if self.missing == "median" else np.mean
        filled: list[float] = []
        for place in found.T:
            known = place[np.isfinite(place)].astype(np.float64)
            if not known.size:
                raise InputError(f"has no number in {len(place)} examples, so it has no {self.missing}. Leave it out.")
            filled.append(float(np.float32(of(known))))
        return filled

    def passes(self, array: Array, known: Any) -> bool:
        """Returns whether all values are finite floats of the width of the column."""
        if array.dtype.kind != "f" or not array.ndim or array.size != len(array) * self.width:
            return False
        return surely_finite(array)

    def fault(self, array: Array, known: Any) -> Fault | None:
        """Returns the first value that is not a number, or not finite."""
        kind = array.dtype.kind
        if kind in "fiub":
            if array.ndim and array.size != len(array) * self.width:
                return self._of_another_width(array)
            return self._of_floats(array) if kind == "f" else None
        if kind == "O":
            found = _no_number(array)
            return self._of_floats(_numbers(array)) if found is None else self._no_number(*found)
        return self._no_number(*_no_numeral(array))

    def convert(self, array: Array, known: Any) -> Array:
        """Returns objects as float32, with None as NaN. If `whole`, integers and truth values keep their type."""
        if array.dtype.kind != "O" or _no_number(array) is not None:
            return array
        plain = np.array(array.tolist()) if self.whole else array
        return plain if plain.dtype.kind in "iub" else _numbers(array)

    def _of_another_width(self, array: Array) -> Fault:
        rows = array.reshape(len(array), -1)
        more = np.flatnonzero(rows[:, self.width :].any(axis=1))  # shorter rows are padded with 0
        row = int(more[0]) if more.size else 0
        return Fault(
            row=row,
            value=rows[row].tolist(),
            problem=f"has {rows.shape[1]} numbers, but {self._column} takes {self.width}",
            cure="Give the column the shape of a row, or bring all rows to its shape.",
        )

    def _of_floats(self, array: Array) -> Fault | None:
        fault = not_finite(array)
        if fault is None:
            return None
        if self.missing is None:
            gone = np.isnan(fault.value)  # type: ignore[call-overload]
            problem = "is missing, and the model takes finite numbers" if gone else "is not finite"
            return Fault(row=fault.row, value=fault.value, problem=problem, cure=_MISSING if gone else "Correct it.")
        endless = np.isinf(array)
        if not endless.any():
            return None
        value = float(array[endless][0])
        return Fault(row=int(np.nonzero(endless)[0][0]), value=value, problem="is not finite", cure="Correct it.")

    def _no_number(self, row: int, value: Any) -> Fault:
        if isinstance(value, (bytes, str)):
            cure = (
                f"Convert it, or describe the feature by categorical_column_with_vocabulary_list({self.key!r}, [...])."
            )
            return Fault(
                row=row, value=shown(value), problem=f"is a string, but {self._column} takes numbers", cure=cure
            )
        if isinstance(value, (list, tuple, np.ndarray)):
            cure = "Bring all rows to one length and give the column its shape, or use sequence_numeric_column."
            return Fault(row=row, value=value, problem=f"is a list, but {self._column} takes numbers", cure=cure)
        kind = type(value).__name__
        cure = "Convert it to a number, such as days: (x - x.min()) / numpy.timedelta64(1, 'D')."
        return Fault(
            row=row,
            value=str(value) if kind in _TIMES else value,
            problem=f"is {_TIMES.get(kind, f'a {kind}')}, but {self._column} takes numbers",
            cure=cure if kind in _TIMES else "Convert it.",
        )

    @property
    def _column(self) -> str:
        return f"numeric_column({self.key!r})"


def _no_number(array: Array) -> tuple[int, Any] | None:
    """Returns the row and the value of the first object that is neither a number nor missing."""
    texts: list[tuple[int, Any]] = []
    for place, value in enumerate(array.reshape(-1).tolist()):
        if value is None or isinstance(value, (int, float, np.number, np.bool_)) or type(value).__name__ == "NAType":
            continue
        if type(value).__module__ == "decimal":
            continue
        found = place * len(array) // array.size, value
        if not isinstance(value, (bytes, str)) or not _is_numeral(value):
            return found
        texts.append(found)
    return texts[0] if texts else None


def _no_numeral(array: Array) -> tuple[int, Any]:
    """Returns the row and the value of the first text that is not a number, or of the first text if all are."""
    flat = array.reshape(-1)
    for place, value in enumerate(flat.tolist()):
        if not isinstance(value, (bytes, str)) or not _is_numeral(value):
            return place * len(array) // array.size, flat[place]
    return 0, flat[0] if array.size else None


def _is_numeral(text: bytes | str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(array: Array) -> Array:
    if array.dtype.kind != "O":
        return array
    flat = [np.nan if value is None or type(value).__name__ == "NAType" else value for value in array.reshape(-1)]
    try:
        return np.array(flat, np.float32).reshape(array.shape)
    except OverflowError:  # an integer beyond float64
        return np.array(list(map(_real, flat)), np.float32).reshape(array.shape)


def _real(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
