"""Inspection of files of examples: their kind, statistics of their columns, and a few rows."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from estimator_inputs.inspect.detect import kind_of
from estimator_inputs.reading.files import FilePattern, find_files
from estimator_inputs.statistics.cells import Cells, plain_values
from estimator_inputs.statistics.files import CsvForm, rows_of_files
from estimator_inputs.statistics.gather import gathered
from estimator_inputs.statistics.record import ColumnStatistics, Statistics
from estimator_inputs.statistics.rows import Rows

_USUAL = CsvForm()


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of an inspection of files.

    Attributes:
        kind: the kind of the files, such as "csv".
        files: the number of files.
        bytes: the size of all files in bytes.
        statistics: the statistics of the inspected rows.
        first: the values of the first rows, by column. None is a row or an item of a list without a value.
    """

    kind: str
    files: int
    bytes: int
    statistics: Statistics
    first: Mapping[str, list[Any]]


def inspect_files(
    file_pattern: FilePattern,
    *,
    kind: str | None = None,
    limit: int | None = 100_000,
    rows: int = 5,
    form: CsvForm = _USUAL,
) -> Report:
    """Reads the first `limit` rows of some files.

    Args:
        file_pattern: a path, a glob pattern, or a list of them.
        kind: "csv", "jsonl", "parquet", "tfrecord" or "array_record". None: the first file determines the kind.
        limit: the number of rows to inspect. None: all rows.
        rows: the number of rows in the report.
        form: the form of CSV files.

    Raises:
        ArgumentError: a file does not exist, or the kind is unknown.
        InputError: a file cannot be read as that kind.
    """
    files = find_files(file_pattern)
    kind = kind or kind_of(files[0])
    first: dict[str, list[Any]] = {}

    def noted() -> Iterator[Rows]:
        for batch in rows_of_files(list(files), limit, kind, form):
            for name, cells in batch.columns.items():
                known = first.setdefault(name, [])
                if len(known) < rows:
                    known.extend(_values(cells, min(batch.rows, rows - len(known))))
            yield batch

    statistics = gathered(noted(), limit=limit)
    return Report(
        kind=kind,
        files=len(files),
        bytes=sum(path.stat().st_size for path in files),
        statistics=statistics,
        first=first,
    )


def _values(cells: Cells, rows: int) -> list[Any]:
    """Returns the values of the first rows. They are lists if a row may have several values."""
    cells = cells.first(rows)
    ends = np.arange(1, rows + 1) if cells.ends is None else cells.ends
    items: list[Any] = [None] * int(ends[-1] if rows else 0)
    places = cells.rows if cells.items is None else cells.items
    for place, value in zip(places.tolist(), plain_values(cells.values), strict=True):
        items[place] = value
    found = [items[begin:end] for begin, end in itertools.pairwise([0, *ends.tolist()])]
    if not cells.shape or (cells.folds and cells.sizes == (1, 1)):
        return [values[0] if values else None for values in found]
    return found


def as_json(report: Report) -> Mapping[str, Any]:
    """Returns the report as JSON values. A number that is not finite is a text, because JSON has no such numbers."""
    found = report.statistics
    return {
        "kind": report.kind,
        "files": report.files,
        "bytes": report.bytes,
        "rows": found.rows,
        "all_rows": found.all_rows,
        "bad_rows": found.bad_rows,
        "bad": list(found.bad),
        "columns": {name: _finite(_facts(column)) for name, column in found.columns.items()},
        "first": {name: _finite(values) for name, values in report.first.items()},
    }


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else json.dumps(value)
    if isinstance(value, list):
        return [_finite(one) for one in cast(list[Any], value)]
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in cast(Mapping[str, Any], value).items()}
    return value


#: The levels of the quantiles in the report.
LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def _facts(column: ColumnStatistics) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "type": column.dtype,
        "shape": ["*" if size is None else size for size in column.shape],
        "missing": column.missing,
        "values": column.values,
        "different": column.different,
        "different_error": column.error,
    }
    if column.sizes is not None:
        facts["values_in_a_row"] = list(column.sizes)
    if column.numbers is not None:
        names = ("minimum", "maximum", "mean", "deviation", "median", "rank_error", "zeros", "infinite")
        facts |= {name: getattr(column, name) for name in names}
        quantiles = column.numbers.quantiles(LEVELS)
        facts["quantiles"] = {f"{level:g}": value for level, value in zip(LEVELS, quantiles, strict=True)}
    if column.words:
        facts["most_common"] = [[word, count] for word, count in list(column.words.items())[:10]]
    return facts
