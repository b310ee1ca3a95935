"""The rule of a categorical column for its feature."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_canned_tabular.host.spelling import Spelling
from estimator_canned_tabular.host.values import is_missing
from estimator_heads import Fault, shown

Array = np.ndarray[Any, Any]

#: Types of objects that need no check if the column accepts texts. A row may be a list of such objects.
_TEXTS = frozenset({str, bytes, type(None), list, tuple, np.ndarray})


@dataclass(frozen=True, kw_only=True)
class WordRule:
    """Accepts texts or integers. None, NaN and the empty text are missing values.

    Attributes:
        key: the feature.
        texts, integers: which of them the column takes.
        spelling: of dates or truth values, if the texts must be such; other objects of the kind are then taken too.
        weighs: whether the feature is also the weight of an example. Weights in objects become floats, which the column
            does not take, so objects that are integers become integers first.
        learns: whether the rule learns from the data. It does not.

    Example:
        >>> WordRule(key="city", texts=True, integers=False).fault(np.array(["Rome", 3.5, None], object), None).row
        1
    """

    key: str
    texts: bool
    integers: bool
    spelling: Spelling | None = None
    weighs: bool = False
    learns: bool = False

    def part(self, array: Array) -> Array:
        """Returns an empty array, because nothing is learned."""
        return array[:0]

    def learn(self, parts: Sequence[Array]) -> Any:
        """Returns None, because nothing is learned."""
        return None

    def passes(self, array: Array, known: Any) -> bool:
        """Returns whether the column accepts arrays of this dtype."""
        kind = array.dtype.kind
        return self.spelling is None and ((kind in "SU" and self.texts) or (kind in "iub" and self.integers))

    def fault(self, array: Array, known: Any) -> Fault | None:
        """Returns the first value that the column refuses. Arrays without one need only a check of the types."""
        if self.spelling is not None:
            return self._spelled(array, self.spelling)
        kind = array.dtype.kind
        if kind == "O":
            return self._of_objects(array)
        if (kind in "SU" and self.texts) or (kind in "iub" and self.integers) or not array.size:
            return None
        return self._refused(0, array.reshape(-1)[0])

    def convert(self, array: Array, known: Any) -> Array:
        """The array; objects that are integers or truth values as such, if they are weights too."""
        if not (self.weighs and array.dtype.kind == "O"):
            return array
        plain = np.array(array.tolist())
        return plain if plain.dtype.kind in "iub" else array

    def _spelled(self, array: Array, spelling: Spelling) -> Fault | None:
        for place, value in enumerate(spelling.texts(array).reshape(-1).tolist()):
            if value is None or value != value or isinstance(value, (list, tuple, np.ndarray)):
                continue  # the column checks the values of a list
            if not isinstance(value, (str, bytes)) or (value and spelling.canonical(value) is None):
                row = place * len(array) // array.size
                problem = f"is not a {spelling.kind} that the column can read"
                return Fault(row=row, value=shown(value), problem=problem, cure=spelling.cure)
        return None

    def _of_objects(self, array: Array) -> Fault | None:
        flat = array.reshape(-1).tolist()
        kinds = set(map(type, flat))
        if self.texts and kinds <= _TEXTS:
            return None
        if self.integers and flat and all(issubclass(kind, (int, np.integer)) for kind in kinds):
            return None
        absent = [not isinstance(value, np.ndarray) and is_missing(value) for value in flat] if self.integers else []
        known = [value for value, gone in zip(flat, absent, strict=False) if not gone]
        if any(absent) and known and all(isinstance(value, (int, np.integer)) for value in known):
            place = absent.index(True)
            return Fault(
                row=place * len(array) // array.size,
                value=shown(flat[place]),
                problem="is missing among integers",
                cure="Fill it and convert the feature to integers (astype): -1 stands for no value.",
            )
        for place, value in enumerate(flat):
            if isinstance(value, (list, tuple, np.ndarray)) or type(value).__name__ in ("NAType", "NaTType"):
                continue
            if value is None or value != value or (self.texts and isinstance(value, (str, bytes))):
                continue
            if self.integers and not self.texts and isinstance(value, (int, np.integer)):
                continue
            return self._refused(place * len(array) // array.size, value)
        return None

    def _refused(self, row: int, value: Any) -> Fault:
        told = shown(value)
        is_date = isinstance(value, (np.datetime64, datetime.date))
        kind = "date" if is_date else "string" if isinstance(told, str) else type(told).__name__
        wanted = " or ".join(name for name, taken in (("strings", self.texts), ("integers", self.integers)) if taken)
        cure = (
            f"Write it as a string, {str(told)!r}."
            if self.texts
            else "Convert it to an integer: -1 stands for no value."
        )
        if is_date and self.texts:
            cure = f"Give the column dates=True, or write it as a string, {str(told)!r}."
        article = "an" if kind[0] in "aeiou" else "a"
        problem = f"is {article} {kind}, but the column of words {self.key!r} takes {wanted}"
        return Fault(row=row, value=told, problem=problem, cure=cure)
