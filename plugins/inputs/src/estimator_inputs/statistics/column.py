"""Collects the statistics of one column from the cells of successive batches."""

from __future__ import annotations

from typing import Any

from estimator_core.errors import InputError
from estimator_inputs.statistics.cells import Cells
from estimator_inputs.statistics.counts import Counts
from estimator_inputs.statistics.numbers import Moments, Numbers
from estimator_inputs.statistics.record import ColumnStatistics


class ColumnGatherer:
    """Collects the statistics of one column, batch by batch.

    Args:
        name: the name of the column.

    Example:
        >>> from estimator_inputs.statistics.cells import cells_of
        >>> gatherer = ColumnGatherer("age")
        >>> gatherer.add(cells_of([20.0, 40.0, float("nan")]), rows=3)
        >>> found = gatherer.result()
        >>> found.mean, found.missing, found.median
        (30.0, 1, 30.0)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._cells: Cells | None = None
        self._rows = self._missing = self._values = 0
        self._shape: tuple[int | None, ...] = ()
        self._sizes: tuple[int, int] | None = None
        self._moments = Moments()
        self._numbers = Numbers()
        self._words = Counts()

    def add(self, cells: Cells, *, rows: int) -> None:
        """Adds the cells of `rows` rows.

        Raises:
            InputError: the type of the cells differs from that of earlier rows.
        """
        first = self._cells
        if first is None or first.dtype == "null":
            self._cells, self._shape = cells, cells.shape
        elif cells.dtype != "null":
            self._check(first, cells)
            if len(cells.shape) != len(self._shape):
                raise InputError(
                    f"Column {self._name!r} has rows of shape {self._shape} and rows of shape {cells.shape}. Give all "
                    "rows the same number of axes."
                )
            if first.dtype.startswith(("int", "uint")) and cells.dtype.startswith("float"):
                self._cells = cells
            self._shape = tuple(a if a == b else None for a, b in zip(self._shape, cells.shape, strict=True))
        self._rows += rows
        self._missing += len(cells.missing)
        self._values += len(cells.values)
        if cells.sizes is not None:
            low, high = self._sizes or cells.sizes
            self._sizes = min(low, cells.sizes[0]), max(high, cells.sizes[1])
        if cells.kind in ("number", "time"):
            self._moments.add(cells.values.to_numpy(zero_copy_only=False))
            self._numbers.add(cells.values)
        elif cells.kind == "word":
            self._words.add(cells.values)

    def result(self) -> ColumnStatistics:
        """Returns the statistics of all cells so far."""
        cells, moments, numbers = self._cells, self._moments, self._numbers
        assert cells is not None
        counts = self._words if cells.kind == "word" else numbers.counts
        some: dict[str, Any] = {}
        if moments.count:
            some = {
                "minimum": float(moments.low or 0),
                "maximum": float(moments.high or 0),
                "mean": moments.mean if moments.count > moments.infinite else None,
                "deviation": moments.deviation if moments.count > moments.infinite else None,
                "median": numbers.quantiles([0.5])[0],
                "rank_error": numbers.rank_error,
                "whole": moments.whole,
                "zeros": moments.zeros,
                "infinite": moments.infinite,
                "numbers": numbers,
            }
        by_count = sorted(self._words.known.items(), key=lambda item: (-item[1], str(item[0])))
        return ColumnStatistics(
            name=self._name,
            kind=cells.kind,
            dtype=cells.dtype,
            shape=self._folded(),
            rows=self._rows,
            missing=self._missing,
            values=self._values,
            sizes=self._sizes,
            different=counts.different,
            error=counts.error,
            words=dict(by_count),
            all_words=self._words.exact,
            **some,
        )

    def _folded(self) -> tuple[int | None, ...]:
        if self._cells is None or not self._cells.folds or self._sizes is None or self._sizes[0] != self._sizes[1]:
            return self._shape
        return () if self._sizes[0] == 1 else (self._sizes[0],)

    def _check(self, first: Cells, cells: Cells) -> None:
        if first.kind != cells.kind or (first.kind == "word" and first.dtype != cells.dtype):
            raise InputError(
                f"Column {self._name!r} is {first.dtype} in its first rows and {cells.dtype} in later ones. Convert "
                "its values to one type."
            )
