"""The values of slice keys, read on the host from the batches of the input."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError, did_you_mean

#: A feature of this name marks the rows that are not padding, in batches that the input padded itself.
IS_REAL_EXAMPLE = "is_real_example"
#: A crossing of features.
Crossing = tuple[str, ...]
Ints = np.ndarray[Any, np.dtype[np.int32]]


class Drawn(NamedTuple):
    """The data of one batch for slicing: the distinct values of each crossing, and the value of each row.

    Attributes:
        values: the distinct values by crossing. Each value is a list with one JSON value for each feature.
        codes: the places in `values` by crossing, int32 [rows].
        groups: the groups of examples that are left out together, int32 [rows], see `jackknife`.
        real: whether a row is not padding, bool [rows].
    """

    values: list[list[list[Any]]]
    codes: list[Ints]
    groups: Ints
    real: np.ndarray[Any, np.dtype[np.bool_]]


def crossings(slices: Iterable[Any]) -> tuple[Crossing, ...]:
    """Returns slices as crossings, without repetition.

    Raises:
        ArgumentError, ArgumentTypeError: a value is not a name or a tuple of different names.

    Example:
        >>> crossings(["sex", ("pclass", "embarked"), "sex"])
        (('sex',), ('pclass', 'embarked'))
    """
    if isinstance(slices, (str, bytes)):
        raise ArgumentTypeError(f"slices must be a list of feature names, given: {slices!r}. Write [{slices!r}].")
    found: list[Crossing] = []
    for given in slices:
        names: tuple[Any, ...] = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise ArgumentTypeError(f"slices must be feature names and tuples of feature names, given: {given!r}.")
        if len(set(names)) != len(names):
            raise ArgumentError(f"slices: {given!r} names a feature twice.")
        if names not in found:
            found.append(names)
    return tuple(found)


class KeyReader:
    """Reads the slice keys of one evaluation's batches, in their order.

    Args:
        wanted: the crossings.
        groups: the number of groups of examples.
        unit: the feature whose value determines the group. None: each example has its own group.
        part: the part of the input.
    """

    def __init__(self, wanted: Sequence[Crossing], *, groups: int, unit: str | None, part: int) -> None:
        self._wanted, self._groups, self._unit = wanted, groups, unit
        self._drawn = part << 40

    def read(self, features: Any, labels: Any) -> Drawn:
        """Returns the keys of the next batch.

        Raises:
            ArgumentError: the feature does not exist, or it has more than one value in an example.
        """
        named = _named(features, labels)
        columns = {name: _factorised(name, named) for crossing in self._wanted for name in crossing}
        rows = _rows(named)
        crossed = [_crossed([columns[name] for name in crossing]) for crossing in self._wanted]
        real = np.asarray(named[IS_REAL_EXAMPLE]).reshape(-1) > 0 if IS_REAL_EXAMPLE in named else np.ones(rows, bool)
        numbers = np.arange(self._drawn, self._drawn + rows, dtype=np.uint64)
        self._drawn += rows
        if self._unit is not None:
            values, codes = _factorised(self._unit, named)
            hashes = [zlib.crc32(repr(value).encode()) for value in values]
            numbers = np.array(hashes, np.uint64)[codes]
        groups = (_mixed(numbers) % np.uint64(self._groups)).astype(np.int32)
        return Drawn([values for values, _ in crossed], [codes for _, codes in crossed], groups, real)


def _named(features: Any, labels: Any) -> dict[str, Any]:
    """Returns features and labels by name. A feature hides a label of the same name."""
    named = dict(features) if isinstance(features, Mapping) else {"features": features}
    of_labels = dict(labels) if isinstance(labels, Mapping) else {} if labels is None else {"labels": labels}
    return {**of_labels, **named}


def _rows(named: Mapping[str, Any]) -> int:
    return next(len(np.asarray(value)) for value in named.values() if not isinstance(value, Mapping))


def _factorised(name: str, named: Mapping[str, Any]) -> tuple[list[Any], Ints]:
    """Returns the distinct values of a feature, as JSON values, and the index of the value of each row."""
    if name not in named:
        hint = did_you_mean(name, named)
        raise ArgumentError(f"slices: the input has no feature {name!r}.{hint} It has {sorted(named)}.")
    array = np.asarray(named[name])
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ArgumentError(
            f"slices: feature {name!r} has the shape {array.shape}; a slice key has one value an example."
        )
    if array.dtype == object:
        places: dict[Any, int] = {}
        keys = (identity(_plain(value)) for value in array)
        codes = np.fromiter((places.setdefault(key, len(places)) for key in keys), np.int32, len(array))
        return [value for _, value in places], codes
    distinct, codes = np.unique(array, return_inverse=True, equal_nan=True)
    return [_plain(value) for value in distinct], codes.astype(np.int32).reshape(-1)


def identity(value: Any) -> tuple[str, Any]:
    """Returns a value as the key of a dictionary. In Python, True, 1 and 1.0 are equal keys.

    Example:
        >>> len({True, 1, 1.0}), len(set(map(identity, [True, 1, 1.0])))
        (1, 3)
    """
    return type(value).__name__, value


def _plain(value: Any) -> Any:
    """Returns a JSON value, or None for a missing value."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    # pandas is not imported for this test. Its NA does not support comparisons, and neither does an array.
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (np.isscalar(value) and value != value):
        return None
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def _crossed(columns: Sequence[tuple[list[Any], Ints]]) -> tuple[list[list[Any]], Ints]:
    """Crosses columns of `_factorised`."""
    together = np.zeros(len(columns[0][1]), np.int64)
    for values, codes in columns:
        together = together * len(values) + codes
    distinct, codes = np.unique(together, return_inverse=True)
    crossed: list[list[Any]] = []
    for number in distinct.tolist():
        row: list[Any] = []
        for values, _ in reversed(columns):
            number, place = divmod(number, len(values))
            row.insert(0, values[place])
        crossed.append(row)
    return crossed, codes.astype(np.int32).reshape(-1)


def _mixed(numbers: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Returns numbers with pseudo-random low bits. Source: splitmix64 by Sebastiano Vigna."""
    x = numbers + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
