"""Statistics of a table in one pass, in memory that does not grow with the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from estimator_inputs.statistics.cells import Cells
from estimator_inputs.statistics.column import ColumnGatherer
from estimator_inputs.statistics.record import Statistics
from estimator_inputs.statistics.rows import Rows
from estimator_inputs.statistics.sources import rows_of_source

#: How many bad rows are reported one by one.
_TOLD = 5

#: Inspects the cells of a column of some rows; the function names the place of a row.
Observer = Callable[[str, Cells, Callable[[int], str]], None]


def gather(source: Any, *, limit: int | None = None, observe: Observer | None = None) -> Statistics:
    """Reads a source once.

    Args:
        source: see `learn_schema`.
        limit: rows to read; None: all.
        observe: called for every column of every batch of rows.

    Raises:
        ArgumentError, ArgumentTypeError: a source that cannot be read, or one that never ends without a limit.
        InputError: a file that cannot be read, or a column whose type changes.

    Example:
        >>> found = gather({"age": [31.0, float("nan")], "name": ["ann", "bob"]})
        >>> found.rows, found.columns["age"].missing, found.columns["name"].different
        (2, 1, 2)
    """
    return gathered(rows_of_source(source, limit), limit=limit, observe=observe)


def gathered(batches: Iterable[Rows], *, limit: int | None = None, observe: Observer | None = None) -> Statistics:
    """Statistics of batches of rows; see `gather`."""
    columns: dict[str, ColumnGatherer] = {}
    rows = bad_rows = 0
    bad: list[str] = []
    ended = True
    for batch in batches:
        if limit is not None and rows >= limit and batch.rows:
            ended = False
            break
        bad_rows += len(batch.bad)
        bad.extend(str(one) for one in batch.bad[: _TOLD - len(bad)])
        if not batch.rows:
            continue
        for name, cells in batch.columns.items():
            columns.setdefault(name, ColumnGatherer(name)).add(cells, rows=batch.rows)
            if observe is not None:
                observe(name, cells, batch.where)
        rows += batch.rows
    return Statistics(
        rows=rows,
        all_rows=ended,
        bad_rows=bad_rows,
        bad=tuple(bad),
        columns={name: gatherer.result() for name, gatherer in columns.items()},
    )
