"""Statistics of a column of a file, gathered batch by batch in memory that does not grow with the number of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from estimator_canned_tabular.cli.distinct import DistinctValues

#: The maximum number of different words that are counted. A column with more counts the first ones.
MOST_COUNTED = 1 << 16
#: The largest number that is finite in float32, in which rows are trained on.
LARGEST = float(np.finfo(np.float32).max)


class ColumnProfile:
    """The numbers and words of one column.

    Attributes:
        rows: the number of rows so far.
        empty: the number of rows without a value.
        endless: the number of rows with "nan" or a value that is infinite in float32, if all others are numbers.
        unread: what the column holds instead of numbers and words, such as "lists"; empty: it holds numbers or words.
        numeric: whether all values so far are numbers.
        whole: whether all numbers are whole.
        mean: the weighted mean of the numbers.
    """

    def __init__(self, unread: str = "") -> None:
        self.unread = unread
        self.rows = self.empty = self.endless = 0
        self.numeric = self.whole = True
        self.mean = 0.0
        self._known = 0
        self._weight = self._squares = 0.0
        self._counts: Counter[bytes] = Counter()
        self._distinct: DistinctValues | None = None

    def add(self, values: Sequence[bytes], weights: np.ndarray | None = None) -> None:
        """Counts the fields of a batch.

        Args:
            values: the fields.
            weights: the weight of each field in the mean and the scale, at least 0. None: 1.
        """
        self.rows += len(values)
        counts = Counter(values)
        self.empty += counts.pop(b"", 0)
        if self.numeric:
            self._add_numbers(values, np.ones(len(values)) if weights is None else weights)
        if self._distinct is None:
            self._counts.update(counts)
            if len(self._counts) > MOST_COUNTED:
                self._distinct = DistinctValues()
                self._distinct.add(self._counts)
            return
        self._distinct.add(counts)
        for word in self._counts.keys() & counts.keys():
            self._counts[word] += counts[word]

    @property
    def numbers(self) -> bool:
        """Whether the values are numbers, and at least one exists."""
        return self.numeric and self._known > 0

    @property
    def scale(self) -> float:
        """The weighted standard deviation of the numbers, or 1 if all are equal."""
        return float(np.sqrt(self._squares / (self._weight or 1.0))) or 1.0

    @property
    def words(self) -> Mapping[str, int]:
        """The count of each word: of all words, or of the first `MOST_COUNTED`."""
        return {word.decode(): count for word, count in self._counts.items()}

    @property
    def distinct(self) -> int:
        """The number of different words, an estimate above `MOST_COUNTED`."""
        return len(self._counts) if self._distinct is None else max(self._distinct.estimate(), len(self._counts))

    @property
    def all_counted(self) -> bool:
        """Whether `words` holds all words."""
        return self._distinct is None

    def _add_numbers(self, values: Sequence[bytes], weights: np.ndarray) -> None:
        found = _as_numbers(values)
        if found is None:
            self.numeric = False
            return
        usable = np.abs(found) <= LARGEST  # the check of the rows refuses larger ones
        known, weights = found[usable], weights[usable]
        self.endless += sum(1 for value in values if value) - known.size
        if not known.size:
            return
        self._known += known.size
        self.whole = self.whole and not (known % 1 != 0).any()
        weight = float(weights.sum())
        if not weight:
            return
        # Combines two parts after Chan, Golub and LeVeque.
        mean, before = float(np.average(known, weights=weights)), self._weight
        self._weight += weight
        self._squares += float(weights @ (known - mean) ** 2)
        self._squares += (mean - self.mean) ** 2 * before * weight / self._weight
        self.mean += (mean - self.mean) * weight / self._weight


def as_weights(values: Sequence[bytes]) -> np.ndarray:
    """Returns float64[rows], 0 where a field is not a finite weight: such rows are refused or left out later.

    Example:
        >>> as_weights([b"0.5", b"", b"nan", b"-1", b"heavy", b"true"]).tolist()
        [0.5, 0.0, 0.0, 0.0, 0.0, 1.0]
    """
    found = np.zeros(len(values))
    for row, value in enumerate(values):
        with suppress(ValueError):
            found[row] = 1.0 if value == b"true" else float(value)  # the text of a truth value of a Parquet file
    return np.where((found > 0) & (found <= LARGEST), found, 0.0)


def _as_numbers(values: Sequence[bytes]) -> np.ndarray | None:
    """Returns float64[rows], NaN where a field is empty, or None if a field is not a number."""
    if any(b"_" in value for value in values):  # 1_000 is a number only in Python
        return None
    try:
        return np.array([float(value) if value else np.nan for value in values])
    except ValueError:
        return None
