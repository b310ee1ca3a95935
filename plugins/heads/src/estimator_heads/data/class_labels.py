"""Labels that are classes, in any form: ids, names, booleans, integers from 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core.errors import InputError
from estimator_heads.data.rule import Array, Fault, not_finite, shown
from estimator_heads.data.texts import is_missing, texts_of
from estimator_heads.vocabulary import Vocabulary

_SHOWN = 10
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_CORRECT = "Correct the label, or leave the row out."
_TRUTH = ("False", "True")


@dataclass(frozen=True, kw_only=True)
class ClassLabels:
    """Labels that are one of several classes.

    Without names, labels are ids from 0. Names are set, or are learned from labels that are texts, booleans, or
    consecutive integers that do not start at 0. With names, a label is the class whose name equals the text of the
    label.

    Attributes:
        n_classes: the number of classes.
        names: the names that were set, or None.
        soft: whether labels may lie between two classes, as probabilities.

    Example:
        >>> rule = ClassLabels(n_classes=3)
        >>> labels = np.array([3, 1, 2])
        >>> known = rule.learn([rule.part(labels)])
        >>> known, rule.convert(labels, known).tolist()
        (['1', '2', '3'], [2, 0, 1])
    """

    n_classes: int
    names: tuple[str, ...] | None = None
    soft: bool = False

    @property
    def learns(self) -> bool:
        """Whether names must be learned, because none were set."""
        return self.names is None

    def part(self, array: Array) -> Array:
        """Returns the different labels."""
        if array.dtype.kind == "O":
            flat = {value for value in array.reshape(-1).tolist() if not is_missing(value)}
            if not all(isinstance(value, (bool, np.bool_)) for value in flat):
                flat = set(texts_of(_objects(flat)).tolist())
            array = np.array(sorted(flat))
        return np.unique(array[~np.isnan(array)] if array.dtype.kind == "f" else array)

    def learn(self, parts: Sequence[Array]) -> list[str] | None:
        """Returns the names of the classes, in the order of their ids. None: labels are ids.

        Raises:
            InputError: the number of texts is not the number of classes.
        """
        found = np.unique(np.concatenate(parts)) if parts else np.zeros(0)
        if found.dtype.kind == "b":
            return list(_TRUTH) if self.n_classes == 2 else None
        if found.dtype.kind in "SU":
            names = [name for name in np.unique(texts_of(found)).tolist() if name]
            if len(names) != self.n_classes:
                other = f"n_classes={len(names)}, or " if len(names) > 1 else ""
                raise InputError(
                    f"hold {len(names)} different strings ({_list(names)}), but n_classes is {self.n_classes}. Give "
                    f"{other}all classes as label_vocabulary=[...], in the order of their ids."
                )
            return names
        if found.dtype.kind not in "iuf" or len(found) != self.n_classes or not np.isfinite(found).all():
            return None
        if (found % 1 != 0).any():
            return None
        in_a_row = found[-1] - found[0] == self.n_classes - 1
        if (found[0] == 0 and in_a_row) or not (in_a_row or found.tolist() == [-1, 1]):
            return None
        return texts_of(found).tolist()

    def passes(self, array: Array, known: Any) -> bool:
        """Returns whether all labels are ids. Only signed integers without names can pass."""
        dtype = array.dtype
        if known or dtype.kind != "i" or not array.size or self.names is not None:
            return False
        bits = array.view(_UNSIGNED[dtype.itemsize])  # as unsigned integers, negative ones are large
        return bits.item(bits.argmax()) < self.n_classes

    def fault(self, array: Array, known: Any) -> Fault | None:
        """Returns the first label that is not a class, or None."""
        names = self.names or known
        kind = array.dtype.kind
        if names is not None:
            return self._not_named(array, tuple(names))
        if kind in "iub":
            return self._outside(array)
        if kind == "f":
            return self._no_id(array)
        return self._no_names(array)

    def convert(self, array: Array, known: Any) -> Array:
        """Returns ids as int32, or soft labels unchanged.

        Raises:
            ArgumentError: a text is not the name of a class.
        """
        names = self.names or known
        if names is not None:
            return _ids(array, tuple(names))
        if array.dtype.kind == "b" or (array.dtype.kind == "f" and not self.soft):
            return array.astype(np.int32)
        return array

    def _outside(self, array: Array) -> Fault | None:
        if array.dtype.kind == "b":
            return None
        wrong = (array < 0) | (array >= self.n_classes)
        return self._wrong_id(array, wrong) if wrong.any() else None

    def _no_id(self, array: Array) -> Fault | None:
        fault = not_finite(array)
        if fault is not None:
            return Fault(row=fault.row, value=fault.value, problem="is not a class", cure=_CORRECT)
        wrong = (array < 0) | (array > self.n_classes - 1)
        if not self.soft:
            wrong |= array % 1 != 0
        return self._wrong_id(array, wrong) if wrong.any() else None

    def _wrong_id(self, array: Array, wrong: Array) -> Fault:
        value = array[wrong][0].item()
        below = "Labels must be >= 0" if value < 0 else f"Labels must be <= {self.n_classes} - 1"
        return Fault(
            row=int(np.nonzero(wrong)[0][0]),
            value=value,
            problem=f"is not a class id ({below})",
            cure=f"{_CORRECT} Labels are ids from 0 to {self.n_classes - 1}. For other labels, name all classes with "
            "label_vocabulary=['...'], in the order of their ids.",
        )

    def _no_names(self, array: Array) -> Fault:
        value = array.reshape(-1)[0]
        if array.dtype.kind in "Mm":
            return Fault(
                row=0,
                value=shown(value),
                problem="is a date or a time span, not a class",
                cure="Pass labels as strings.",
            )
        return Fault(
            row=0,
            value=shown(value),
            problem="is a string, but the classes have no names",
            cure="Name them with label_vocabulary=['...'], in the order of their ids. A training that "
            "reads arrays, DataFrames or files learns them.",
        )

    def _not_named(self, array: Array, names: tuple[str, ...]) -> Fault | None:
        if array.dtype.kind in "Mm":
            return self._no_names(array)
        texts = texts_of(array)
        known = np.isin(texts, np.array(names))
        if known.all():
            return None
        row = int(np.nonzero(~known)[0][0])
        value = array[~known].reshape(-1)[0]
        gone = is_missing(value) or value == b""
        return Fault(
            row=row,
            value=shown(value),
            problem="is missing" if gone else f"is not one of the classes {_list(names)}",
            cure=_CORRECT if gone else "Correct the label, or add the class to label_vocabulary and n_classes.",
        )


def _ids(array: Array, names: tuple[str, ...]) -> Array:
    vocabulary = Vocabulary(names, "classes")
    if array.dtype.kind in "OSU":
        return vocabulary.ids(texts_of(array))
    values, places = np.unique(array, return_inverse=True)
    return vocabulary.ids(texts_of(values))[places].reshape(array.shape)


def _objects(values: set[Any]) -> Array:
    array = np.empty(len(values), object)
    array[:] = list(values)
    return array


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
