"""What is known about the columns of a table after one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimator_inputs.statistics.cells import CellKind
from estimator_inputs.statistics.numbers import Numbers


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """One column. Numbers are None where it has none.

    Attributes:
        name: of the column.
        kind: "number", "word", "time" (seconds since 1970) or "other".
        dtype: such as "int64", "float32", "string", "bool".
        shape: of one row; None where rows differ.
        rows: of the table.
        missing: rows that lack a value.
        values: how many values there are in all rows.
        sizes: (least, most) values in a row that has some.
        different: how many different values.
        error: relative standard error of `different`; 0 where it is exact.
        minimum, maximum: smallest and largest number.
        mean, deviation: of the finite numbers; the deviation is of the population.
        median: within `rank_error` of the middle.
        rank_error: by how much of all values the rank of a quantile may be off (99% confidence); 0 where exact.
        whole: whether all numbers are whole.
        zeros, infinite: how many numbers are.
        words: how often each word came, most common first: of all, or of those that came first.
        all_words: whether `words` are all.
        numbers: where the numbers lie.
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
    """A table.

    Attributes:
        rows: that were read.
        all_rows: whether the source ended with them.
        bad_rows: rows of files that make none, such as lines with another number of fields; not among `rows`.
        bad: what is wrong with the first of them, with file and line.
        columns: by name.
    """

    rows: int
    all_rows: bool
    bad_rows: int
    bad: tuple[str, ...]
    columns: Mapping[str, ColumnStatistics]
