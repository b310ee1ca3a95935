"""Counts the cells that violate a schema while rows are read, and keeps the place of the first one per rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from estimator_inputs.schema.contract import FeatureSchema, Schema
from estimator_inputs.statistics.cells import Cells, plain_values

#: The number of different values that are counted per rule.
_REMEMBERED = 1000


@dataclass
class Broken:
    """The values that violate one rule.

    Attributes:
        count: the number of values.
        first: the first value.
        where: the row of the first value, with file and line if they are known.
        values: the number of occurrences of each value, for the first thousand different values.
    """

    count: int = 0
    first: Any = None
    where: str = ""
    values: Counter[Any] = field(default_factory=Counter[Any])

    def add(self, values: Any, where: Callable[[int], str]) -> None:
        """Adds values. `where` returns the place of a value from its index."""
        if not len(values):
            return
        if not self.count:
            self.first, self.where = values[0], where(0)
        self.count += len(values)
        if len(self.values) < _REMEMBERED:
            self.values.update(values)


class Watcher:
    """An observer of `gather` that counts the values that violate a schema, by column.

    Attributes:
        missing: the rows without a value.
        outside: the numbers below the minimum or above the maximum.
        unknown: the values outside the vocabulary.
        no_numbers: the words in a column of numbers.
        no_whole: the real numbers in a column of integers.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.missing: dict[str, Broken] = {}
        self.outside: dict[str, Broken] = {}
        self.unknown: dict[str, Broken] = {}
        self.no_numbers: dict[str, Broken] = {}
        self.no_whole: dict[str, Broken] = {}

    def __call__(self, name: str, cells: Cells, where: Callable[[int], str]) -> None:
        """Checks the cells of some rows."""
        feature = self._schema.features.get(name)
        if feature is None:
            return
        missing = self.missing.setdefault(name, Broken())
        if len(cells.missing):
            missing.add([None] * len(cells.missing), lambda place: where(int(cells.missing[place])))
        if not len(cells.values):
            return
        if cells.kind == "word" and cells.dtype != "bool" and feature.kind == "number":
            self._note(self.no_numbers, name, cells, _no_numbers(cells.values), where)
        elif cells.kind == "number" and (feature.kind == "number" or _has_classes(feature)):
            numbers = cells.values.to_numpy(zero_copy_only=False)
            if feature.dtype.startswith(("int", "uint")) and numbers.dtype.kind == "f":
                finite = np.isfinite(numbers)
                self._note(self.no_whole, name, cells, finite & (numbers != np.rint(numbers)), where)
        if cells.kind in ("number", "time"):
            self._limits(feature, cells, where)
        if feature.vocabulary:
            self._words(feature, cells, where)

    def _limits(self, feature: FeatureSchema, cells: Cells, where: Callable[[int], str]) -> None:
        if feature.minimum is None and feature.maximum is None:
            return
        numbers = cells.values.to_numpy(zero_copy_only=False)
        low = -np.inf if feature.minimum is None else feature.minimum
        high = np.inf if feature.maximum is None else feature.maximum
        if "float32" in (feature.dtype, cells.dtype):  # as inputs return numbers, so that 0.1 equals 0.1
            with np.errstate(over="ignore"):
                numbers, low, high = numbers.astype(np.float32), np.float32(low), np.float32(high)
        self._note(self.outside, feature.name, cells, (numbers < low) | (numbers > high), where)

    def _words(self, feature: FeatureSchema, cells: Cells, where: Callable[[int], str]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        words = feature.vocabulary
        if cells.kind == "number" and _has_classes(feature):
            known = np.isin(cells.values.to_numpy(zero_copy_only=False), np.array(words))
        elif cells.kind == "word" and (cells.dtype == "bool") == (feature.dtype == "bool"):
            listed = pa.array(words).cast(cells.values.type)
            known = cast(Any, pc).is_in(cells.values, listed).to_numpy(zero_copy_only=False)
        else:
            return
        self._note(self.unknown, feature.name, cells, ~known, where)

    def _note(
        self,
        kept: dict[str, Broken],
        name: str,
        cells: Cells,
        wrong: np.ndarray,
        where: Callable[[int], str],
    ) -> None:
        places = np.flatnonzero(wrong)
        if not places.size:
            return
        import pyarrow as pa

        values = plain_values(cells.values.take(pa.array(places)))
        kept.setdefault(name, Broken()).add(values, lambda place: where(int(cells.rows[places[place]])))


def _has_classes(feature: FeatureSchema) -> bool:
    return bool(feature.vocabulary) and feature.dtype not in ("string", "bool")


def _no_numbers(words: Any) -> np.ndarray:
    return np.array([not _is_number(word) for word in plain_values(words)], bool)


def _is_number(word: Any) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
