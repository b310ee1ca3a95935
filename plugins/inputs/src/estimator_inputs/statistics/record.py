"""Statistics of the columns of a table after one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimator_inputs.statistics.cells import CellKind
from estimator_inputs.statistics.numbers import Numbers


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """The statistics of one column. Statistics of numbers are None if it has no numbers.

    Attributes:
        name: the name of the column.
        kind: "number", "word", "time" (seconds since 1970) or "other".
        dtype: the type, such as "int64", "float32", "string", "bool".
        shape: the shape of one row, with None for a size that differs between rows.
        rows: the number of rows of the table.
        missing: the number of rows without a value.
        values: the number of values in all rows.
        sizes: the (smallest, largest) number of values of a row that has values.
        different: the number of different values.
        error: the relative standard error of `different`, or 0 if it is exact.
        minimum, maximum: the smallest and the largest number.
        mean, deviation: the mean and the population deviation of the finite numbers.
        median: the median. The error of its rank is at most `rank_error`.
        rank_error: the error of the rank of a quantile, as a share of all values (99% confidence), or 0 if exact.
        whole: whether all numbers are integers.
        zeros, infinite: the number of zeros and of infinite numbers.
        words: the number of occurrences of each word, most common first. These are all words or the first ones.
        all_words: whether `words` contains all words.
        numbers: the distribution of the numbers.
    """

    name: str
    kind: CellKind
    dtype: str
    shape: tuple[int | None, ...]
    rows: int
    missing: int
    values: int
    sizes: tuple[int, int] | None = None
    different: int = 0
    error: float = 0.0
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    deviation: float | None = None
    median: float | None = None
    rank_error: float = 0.0
    whole: bool = False
    zeros: int = 0
    infinite: int = 0
    words: Mapping[Any, int]
    all_words: bool = True
    numbers: Numbers | None = None

    @property
    def missing_rate(self) -> float:
        """The share of rows without a value."""
        return self.missing / self.rows if self.rows else 0.0


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The statistics of a table.

    Attributes:
        rows: the number of rows that were read.
        all_rows: whether these are all rows of the source.
        bad_rows: the number of bad rows of files, such as lines with a wrong number of fields. `rows` excludes them.
        bad: the faults of the first bad rows, with file and line.
        columns: the statistics of the columns, by name.
    """

    rows: int
    all_rows: bool
    bad_rows: int
    bad: tuple[str, ...]
    columns: Mapping[str, ColumnStatistics]
