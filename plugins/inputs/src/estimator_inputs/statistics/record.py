"""Statistics of the columns of a table after one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimator_inputs.statistics.cells import CellKind
from estimator_inputs.statistics.numbers import Numbers


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """Statistics of one column. Statistics of numbers are None if it has no numbers.

    Attributes:
        name: the name of the column.
        kind: "number", "word", "time" (seconds since 1970) or "other".
        dtype: the type, such as "int64", "float32", "string", "bool".
        shape: the shape of one row; None if rows differ.
        rows: the number of rows of the table.
        missing: rows that lack a value.
        values: how many values there are in all rows.
        sizes: (least, most) values in a row that has any.
        different: how many different values.
        error: relative standard error of `different`; 0 if it is exact.
        minimum, maximum: smallest and largest number.
        mean, deviation: the mean and the population deviation of the finite numbers.
        median: the median; its rank is within `rank_error` of the middle.
        rank_error: the error of the rank of a quantile, as a share of all values (99% confidence); 0 if exact.
        whole: whether all numbers are whole.
        zeros, infinite: how many numbers are zero or infinite.
        words: how often each word occurred, most common first: of all words, or of the first ones.
        all_words: whether `words` holds all words.
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
        """The share of rows that lack a value."""
        return self.missing / self.rows if self.rows else 0.0


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Statistics of a table.

    Attributes:
        rows: the number of rows that were read.
        all_rows: whether the source ended with them.
        bad_rows: bad rows of files, such as lines with another number of fields; not among `rows`.
        bad: the faults of the first bad rows, with file and line.
        columns: the statistics of the columns, by name.
    """

    rows: int
    all_rows: bool
    bad_rows: int
    bad: tuple[str, ...]
    columns: Mapping[str, ColumnStatistics]
