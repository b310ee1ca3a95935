"""What is gathered about a column of a file, batch by batch, in memory that does not grow with the number of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from estimator_canned_tabular.cli.distinct import DistinctValues

#: Different words that are counted; for a column with more, the first ones.
MOST_COUNTED = 1 << 16
#: Rows are trained on as float32, in which larger numbers are infinite.
LARGEST = float(np.finfo(np.float32).max)


class ColumnProfile:
    """Numbers and words of one column.

    Attributes:
        rows: seen so far.
        empty: of those, how many have no value.
        endless: of those, how many are "nan", or infinite as float32, while all others are numbers.
        unread: what the column holds instead of numbers and words, such as "lists"; empty: nothing else.
        numeric: whether all values so far are numbers.
        whole: whether all numbers are.
        mean: of the numbers.
    """

    def __init__(self, unread: str = "") -> None:
        self.unread = unread
        self.rows = self.empty = self.endless = 0
        self.numeric = self.whole = True
        self.mean = 0.0
        self._known = 0
        self._squares = 0.0
        self._counts: Counter[bytes] = Counter()
        self._distinct: DistinctValues | None = None

    def add(self, values: Sequence[bytes]) -> None:
        """Takes the fields of a batch."""
        self.rows += len(values)
        counts = Counter(values)
        self.empty += counts.pop(b"", 0)
        if self.numeric:
            self._add_numbers(values)
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
        """Whether the values are numbers, and there are some."""
        return self.numeric and self._known > 0

    @property
    def scale(self) -> float:
        """The standard deviation of the numbers; 1 if they are all the same."""
        return float(np.sqrt(self._squares / max(self._known, 1))) or 1.0

    @property
    def words(self) -> Mapping[str, int]:
        """How often each word occurs: of all words, or of the first `MOST_COUNTED`."""
        return {word.decode(): count for word, count in self._counts.items()}

    @property
    def distinct(self) -> int:
        """How many different words there are, estimated above `MOST_COUNTED`."""
        return len(self._counts) if self._distinct is None else max(self._distinct.estimate(), len(self._counts))

    @property
    def all_counted(self) -> bool:
        """Whether `words` are all."""
        return self._distinct is None

    def _add_numbers(self, values: Sequence[bytes]) -> None:
        found = _as_numbers(values)
        if found is None:
            self.numeric = False
            return
        known = found[np.abs(found) <= LARGEST]  # a larger one is refused by its row, where rows are checked
        self.endless += sum(1 for value in values if value) - known.size
        if not known.size:
            return
        # two parts combined: Chan, Golub and LeVeque
        mean, before = float(known.mean()), self._known
        self._known += known.size
        self._squares += float(((known - mean) ** 2).sum())
        self._squares += (mean - self.mean) ** 2 * before * known.size / self._known
        self.mean += (mean - self.mean) * known.size / self._known
        self.whole = self.whole and not (known % 1 != 0).any()


def _as_numbers(values: Sequence[bytes]) -> np.ndarray | None:
    """float64[rows], NaN where a field is empty; None if a field is not a number."""
    if any(b"_" in value for value in values):  # 1_000 is a number only in Python
        return None
    try:
        return np.array([float(value) if value else np.nan for value in values])
    except ValueError:
        return None
