"""Labels with any number of classes per example: multi-hot, or lists of ids or names."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_heads.data.rule import Array, Fault, shown
from estimator_heads.data.texts import is_missing

_SHOWN = 10
_CORRECT = "Correct the label, or leave the row out."
_IDS = "Pass class ids as integers, or multi-hot labels: 0 or 1 in a column for each class."


@dataclass(frozen=True, kw_only=True)
class LabelSets:
    """Labels that are several of `n_classes` classes.

    This rule converts nothing, because the transform of the head does.

    A row of more than two numbers that are all 0 or 1 contains a number twice. It cannot be a list of ids, which
    differ.

    Attributes:
        n_classes: the number of classes.
        names: the names of the classes. None: labels are ids.
        learns: whether the rule learns from the data. It does not.

    Example:
        >>> rule = LabelSets(n_classes=7)
        >>> rule.fault(np.array([[0, 2], [8, -1]]), None).row
        1
        >>> rule.fault(np.array([[0, 1, 0, 0, 1]]), None).problem
        'has 5 numbers that are 0 or 1, but n_classes of the MultiLabelHead is 7'
    """

    n_classes: int
    names: tuple[str, ...] | None = None
    learns: bool = False

    def part(self, array: Array) -> Array:
        """Returns nothing, because nothing is learned."""
        return array[:0]

    def learn(self, parts: Sequence[Array]) -> Any:
        """Returns nothing, because nothing is learned."""
        return None

    def passes(self, array: Array, known: Any) -> bool:
        """Returns False, because `fault` is fast enough."""
        return False

    def fault(self, array: Array, known: Any) -> Fault | None:
        """Returns the first row whose labels are not classes or may be multi-hot with another width, or None."""
        hot = by_class(array, self.n_classes)
        if hot is not None and _binary(hot).all():
            return None
        ids = None if hot is None or hot.dtype.kind not in "iu" else hot
        for row in self._doubtful(array):
            found = self._row_fault(row, array[row], ids)
            if found is not None:
                return found
        return None

    def convert(self, array: Array, known: Any) -> Array:
        """Returns the labels unchanged."""
        return array

    def _doubtful(self, array: Array) -> Iterable[int]:
        """Returns the rows that may not be lists of ids."""
        if self.names is None and array.ndim == 1 and array.dtype == object:
            return self._doubtful_lists([values_of(row).reshape(-1) for row in array])
        if self.names is not None or array.ndim not in (1, 2) or array.dtype.kind not in "iu" or not array.size:
            return range(len(array))
        rows = array.reshape(len(array), -1)
        high, may_be_hot = rows.max(1), rows.shape[1] > 2
        return np.flatnonzero((rows.min(1) < -1) | (high >= self.n_classes) | ((high < 2) & may_be_hot)).tolist()

    def _doubtful_lists(self, rows: Sequence[Array]) -> Iterable[int]:
        """Returns the same as `_doubtful` for lists of different lengths. Checking each list in Python takes longer
        than a step.
        """
        lengths = [row.size for row in rows]
        filled = [row for row in rows if row.size]
        if not filled or any(row.dtype.kind != "i" for row in filled):
            return range(len(rows))
        values, places = np.concatenate(filled), np.repeat(np.arange(len(rows)), lengths)
        wrong, given, high = (
            np.bincount(places[chosen], minlength=len(rows))
            for chosen in ((values < -1) | (values >= self.n_classes), values != -1, values > 1)
        )
        return np.flatnonzero(wrong.astype(bool) | ((high == 0) & (given > 2))).tolist()

    @functools.cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names or ())

    def _row_fault(self, row: int, labels: Any, ids: Array | None) -> Fault | None:
        values = values_of(labels).reshape(-1)
        if not values.size:
            return None
        if values.dtype.kind in "iu":
            values = values[values != -1]
        least = 2 if values.dtype.kind in "bf" else 3  # two integers 0 and 1 may be ids
        if values.dtype.kind in "biuf" and len(values) >= least and _binary(values).all():
            return self._width(row, values, ids)
        for value in values.tolist():
            problem = self._of_text(value) if self.names is not None else self._of_id(value)
            if problem is not None:
                return Fault(row=row, value=shown(value), problem=problem[0], cure=problem[1])
        return None

    def _of_text(self, value: Any) -> tuple[str, str] | None:
        text = value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value
        names = self.names or ()
        if text == "" or (isinstance(text, str) and text in self._known):
            return None
        if is_missing(value):
            return "is missing", _CORRECT
        if not isinstance(text, str):
            kind = type(value).__name__
            return f"is of type {kind}, but labels should be strings if there is a label_vocabulary", _CORRECT
        known = f"{', '.join(map(repr, names[:_SHOWN]))}{', ...' if len(names) > _SHOWN else ''}"
        cure = "Correct the label, or add the class to label_vocabulary and n_classes."
        return f"is not one of the classes {known} (Labels must be >= 0)", cure

    def _of_id(self, value: Any) -> tuple[str, str] | None:
        if is_missing(value) and not isinstance(value, (str, bytes)):
            return "is missing", _CORRECT
        if isinstance(value, (str, bytes)):
            cure = "Name them with label_vocabulary=['...'], in the order of their ids."
            return "is a string, but the classes have no names: labels should be integer ids", cure
        if isinstance(value, bool) or not isinstance(value, int):
            return f"is of type {type(value).__name__}, but labels should be integer ids", _IDS
        if 0 <= value < self.n_classes:
            return None
        limits = f"labels must be an integer SparseTensor with values in [0, {self.n_classes})"
        return f"is not a class id ({limits})", f"{_CORRECT} -1 pads rows."

    def _width(self, row: int, values: Array, ids: Array | None) -> Fault:
        if ids is None or len(values) != self.n_classes:
            problem = f"has {len(values)} numbers that are 0 or 1, but n_classes of the MultiLabelHead is"
            cure = "Multi-hot labels have a column for each class. In a list of ids, each id occurs once."
            return Fault(row=row, value=values.tolist(), problem=f"{problem} {self.n_classes}", cure=cure)
        other = int(np.flatnonzero(~_binary(ids).reshape(len(ids), -1).all(1))[0])
        problem = f"is multi-hot, but row {other} is not: {ids[other].tolist()}"
        cure = "Correct one of them. In a list of ids, each id occurs once."
        return Fault(row=row, value=values.tolist(), problem=problem, cure=cure)


def by_class(labels: Any, n_classes: int) -> Array | None:
    """Returns numbers [batch, ..., n_classes], or None if the labels do not have this form.

    Example:
        >>> by_class(np.array([[0, 1, 0, -1]]), 3).tolist(), by_class(np.array([[0, 5, 2, 3]]), 3)
        ([[0, 1, 0]], None)
    """
    given = np.asarray(labels)
    if n_classes > 2:  # n_classes different ids include one above 1; two ids may be 0 and 1
        if given.dtype == object and given.ndim == 1 and all(np.shape(row) == (n_classes,) for row in given):
            given = np.array([*map(np.asarray, given)])
        elif given.ndim == 2 and given.shape[1] > n_classes and given.dtype.kind in "iu":
            given = given[:, :n_classes] if (given[:, n_classes:] == -1).all() else given
    return given if given.ndim > 1 and given.shape[-1] == n_classes and given.dtype.kind in "biuf" else None


def values_of(labels: Any) -> Array:
    """Returns the labels of one example as an array. The example may have a single label.

    Example:
        >>> values_of("cat").tolist(), values_of([1, 2]).tolist()
        (['cat'], [1, 2])
    """
    single = isinstance(labels, (str, bytes)) or not isinstance(labels, (Iterable, np.ndarray))
    return np.asarray([labels] if single else labels)


def _binary(values: Array) -> Array:
    return (values == 0) | (values == 1)
